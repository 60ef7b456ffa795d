"""The public names, for type checkers and for `__init__.py`, which loads each when it is asked for."""

from .flagship import experiment
from .listings import graphs, listing, search, servers
from .records import Configuration, ConfigurationError, Record, RecordError, read_record

__all__ = [
    "Configuration",
    "ConfigurationError",
    "Record",
    "RecordError",
    "experiment",
    "graphs",
    "listing",
    "read_record",
    "search",
    "servers",
]
