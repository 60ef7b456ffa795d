"""Tables, statements and figures of the studies that have many of them."""
