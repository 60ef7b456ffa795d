"""BibTeX of the sources."""

from __future__ import annotations

import re

__all__ = ["BIBTEX"]

_ENTRIES = r"""
@inproceedings{alistarh2017qsgd,
  author    = {Alistarh, Dan and Grubic, Demjan and Li, Jerry and Tomioka, Ryota and Vojnovic, Milan},
  title     = {{QSGD}: Communication-Efficient {SGD} via Gradient Quantization and Encoding},
  booktitle = {Advances in Neural Information Processing Systems 30},
  year      = {2017}
}

@inproceedings{stich2018sparsified,
  author    = {Stich, Sebastian U. and Cordonnier, Jean-Baptiste and Jaggi, Martin},
  title     = {Sparsified {SGD} with Memory},
  booktitle = {Advances in Neural Information Processing Systems 31},
  year      = {2018},
  note      = {arXiv:1809.07599}
}

@inproceedings{karimireddy2019error,
  author    = {Karimireddy, Sai Praneeth and Rebjock, Quentin and Stich, Sebastian U. and Jaggi, Martin},
  title     = {Error Feedback Fixes {SignSGD} and other Gradient Compression Schemes},
  booktitle = {International Conference on Machine Learning},
  year      = {2019},
  note      = {arXiv:1901.09847}
}

@inproceedings{yin2018gradient,
  author    = {Yin, Dong and Pananjady, Ashwin and Lam, Max and Papailiopoulos, Dimitris and Ramchandran, Kannan
               and Bartlett, Peter},
  title     = {Gradient Diversity: a Key Ingredient for Scalable Distributed Learning},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2018},
  note      = {arXiv:1706.05699}
}

@inproceedings{rakhlin2012making,
  author    = {Rakhlin, Alexander and Shamir, Ohad and Sridharan, Karthik},
  title     = {Making Gradient Descent Optimal for Strongly Convex Stochastic Optimization},
  booktitle = {International Conference on Machine Learning},
  year      = {2012},
  note      = {arXiv:1109.5647}
}

@misc{lacoste2012simpler,
  author    = {Lacoste-Julien, Simon and Schmidt, Mark and Bach, Francis},
  title     = {A simpler approach to obtaining an {O(1/t)} convergence rate for the projected stochastic subgradient
               method},
  year      = {2012},
  note      = {arXiv:1212.2002}
}

@article{bottou2018optimization,
  author    = {Bottou, L{\'e}on and Curtis, Frank E. and Nocedal, Jorge},
  title     = {Optimization Methods for Large-Scale Machine Learning},
  journal   = {SIAM Review},
  volume    = {60},
  number    = {2},
  year      = {2018},
  note      = {arXiv:1606.04838}
}
"""

BIBTEX = {re.search(r"\{(\w+),", entry).group(1): entry for entry in _ENTRIES.strip().split("\n\n")}
