"""``python -m theory.experiment``: comparison of methods on data and ranks, with costs, bounds and a record."""

from ..reporting.files import ConfigurationError as ConfigurationError
from ..reporting.files import RecordError as RecordError
from .configuration import Configuration as Configuration
from .flagship import experiment as experiment
from .records import Record as Record
from .records import read_record as read_record
