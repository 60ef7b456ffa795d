"""Input and output of the command line and the studies: progress, files, JSON values, figure records."""
