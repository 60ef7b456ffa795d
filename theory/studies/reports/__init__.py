"""Tables, statements and figures of studies with long reports."""
