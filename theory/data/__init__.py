"""Data sets, checked on loading: RCV1, LIBSVM files, scikit-learn's small sets, and the synthetic twin."""

from .dataset import DataError, Dataset, make_dataset, require_binary
from .examples import wilson_data
from .load import NAMES, load_data
from .multilabel import rcv1_topics
from .sharding import shard
