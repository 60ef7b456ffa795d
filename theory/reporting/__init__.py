"""What the command line and the studies write and read: progress, files, JSON values, records of figures."""
