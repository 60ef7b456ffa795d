"""``python -m theory.experiment``: methods side by side on data and ranks, with costs, bounds and a record."""

from .configuration import Configuration as Configuration
from .configuration import ConfigurationError as ConfigurationError
from .flagship import experiment as experiment
from .records import Record as Record
from .records import RecordError as RecordError
from .records import read_record as read_record
