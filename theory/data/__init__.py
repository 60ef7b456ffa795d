"""Where a matrix comes from: RCV1, LIBSVM files, scikit-learn's bundled sets, the synthetic twin; checked at the door."""

from theory.data.dataset import DataError as DataError
from theory.data.dataset import Dataset as Dataset
from theory.data.dataset import make_dataset as make_dataset
from theory.data.dataset import require_binary as require_binary
from theory.data.load import NAMES as NAMES
from theory.data.load import load_data as load_data
