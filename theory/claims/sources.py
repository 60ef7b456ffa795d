"""BibTeX of the sources, and how each of them is known here."""

from __future__ import annotations

__all__ = ["BIBTEX", "KNOWLEDGE", "KNOWN", "source_known"]

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

@inproceedings{wangni2018gradient,
  author    = {Wangni, Jianqiao and Wang, Jialei and Liu, Ji and Zhang, Tong},
  title     = {Gradient Sparsification for Communication-Efficient Distributed Optimization},
  booktitle = {Advances in Neural Information Processing Systems 31},
  year      = {2018},
  note      = {arXiv:1710.09854}
}

@inproceedings{bergthomsen2025tight,
  author    = {Berg Thomsen, Daniel and Taylor, Adrien and Dieuleveut, Aymeric},
  title     = {Tight Analyses of First-Order Methods with Error Feedback},
  booktitle = {Advances in Neural Information Processing Systems 38},
  year      = {2025},
  note      = {arXiv:2506.05271}
}

@misc{bergthomsen2026tight,
  author    = {Berg Thomsen, Daniel and Taylor, Adrien and Dieuleveut, Aymeric},
  title     = {A Tight Theory of Error Feedback Algorithms in Distributed Optimization},
  year      = {2026},
  note      = {arXiv:2605.31594}
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

@inproceedings{tang2021bit,
  author    = {Tang, Hanlin and Gan, Shaoduo and Awan, Ammar Ahmad and Rajbhandari, Samyam and Li, Conglong and Lian,
               Xiangru and Liu, Ji and Zhang, Ce and He, Yuxiong},
  title     = {1-bit {Adam}: Communication Efficient Large-Scale Training with {Adam}'s Convergence Speed},
  booktitle = {International Conference on Machine Learning},
  year      = {2021},
  note      = {arXiv:2102.02888}
}

@inproceedings{charikar2002finding,
  author    = {Charikar, Moses and Chen, Kevin and Farach-Colton, Martin},
  title     = {Finding Frequent Items in Data Streams},
  booktitle = {International Colloquium on Automata, Languages and Programming},
  year      = {2002}
}

@inproceedings{horvath2022natural,
  author    = {Horv{\'a}th, Samuel and Ho, Chen-Yu and Horv{\'a}th, {\v L}udov{\'i}t and Sahu, Atal Narayan and
               Canini, Marco and Richt{\'a}rik, Peter},
  title     = {Natural Compression for Distributed Deep Learning},
  booktitle = {Mathematical and Scientific Machine Learning},
  year      = {2022},
  note      = {arXiv:1905.10988}
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

@article{ramezani2021nuqsgd,
  author    = {Ramezani-Kebrya, Ali and Faghri, Fartash and Markov, Ilya and Aksenov, Vitalii and Alistarh, Dan
               and Roy, Daniel M.},
  title     = {{NUQSGD}: Provably Communication-efficient Data-parallel {SGD} via Nonuniform Quantization},
  journal   = {Journal of Machine Learning Research},
  volume    = {22},
  number    = {114},
  pages     = {1--43},
  year      = {2021}
}

@inproceedings{wen2017terngrad,
  author    = {Wen, Wei and Xu, Cong and Yan, Feng and Wu, Chunpeng and Wang, Yandan and Chen, Yiran and Li, Hai},
  title     = {{TernGrad}: Ternary Gradients to Reduce Communication in Distributed Deep Learning},
  booktitle = {Advances in Neural Information Processing Systems 30},
  year      = {2017}
}

@inproceedings{wang2018atomo,
  author    = {Wang, Hongyi and Sievert, Scott and Liu, Shengchao and Charles, Zachary and Papailiopoulos, Dimitris
               and Wright, Stephen},
  title     = {{ATOMO}: Communication-Efficient Learning via Atomic Sparsification},
  booktitle = {Advances in Neural Information Processing Systems 31},
  year      = {2018},
  note      = {arXiv:1806.04090}
}

@inproceedings{vogels2019powersgd,
  author    = {Vogels, Thijs and Karimireddy, Sai Praneeth and Jaggi, Martin},
  title     = {{PowerSGD}: Practical Low-Rank Gradient Compression for Distributed Optimization},
  booktitle = {Advances in Neural Information Processing Systems 32},
  year      = {2019},
  note      = {arXiv:1905.13727}
}

@article{eckart1936approximation,
  author    = {Eckart, Carl and Young, Gale},
  title     = {The approximation of one matrix by another of lower rank},
  journal   = {Psychometrika},
  volume    = {1},
  number    = {3},
  year      = {1936}
}

@inproceedings{richtarik2021ef21,
  author    = {Richt{\'a}rik, Peter and Sokolov, Igor and Fatkhullin, Ilyas},
  title     = {{EF21}: A New, Simpler, Theoretically Better, and Practically Faster Error Feedback},
  booktitle = {Advances in Neural Information Processing Systems 34},
  year      = {2021},
  note      = {arXiv:2106.05203}
}

@inproceedings{gorbunov2021marina,
  author    = {Gorbunov, Eduard and Burlachenko, Konstantin and Li, Zhize and Richt{\'a}rik, Peter},
  title     = {{MARINA}: Faster Non-Convex Distributed Learning with Compression},
  booktitle = {International Conference on Machine Learning},
  year      = {2021},
  note      = {arXiv:2102.07845}
}

@misc{mishchenko2019distributed,
  author    = {Mishchenko, Konstantin and Gorbunov, Eduard and Tak{\'a}{\v c}, Martin and Richt{\'a}rik, Peter},
  title     = {Distributed Learning with Compressed Gradient Differences},
  year      = {2019},
  note      = {arXiv:1901.09269}
}

@misc{li2023contractive,
  author    = {Li, Bingcong and others},
  title     = {Contractive Error Feedback for Gradient Compression},
  year      = {2023},
  note      = {arXiv:2312.08538}
}

@article{nemirovski2009robust,
  author    = {Nemirovski, Arkadi and Juditsky, Anatoli and Lan, Guanghui and Shapiro, Alexander},
  title     = {Robust Stochastic Approximation Approach to Stochastic Programming},
  journal   = {SIAM Journal on Optimization},
  volume    = {19},
  number    = {4},
  year      = {2009}
}

@article{polyak1992acceleration,
  author    = {Polyak, Boris T. and Juditsky, Anatoli B.},
  title     = {Acceleration of Stochastic Approximation by Averaging},
  journal   = {SIAM Journal on Control and Optimization},
  volume    = {30},
  number    = {4},
  year      = {1992}
}

@article{bubeck2015convex,
  author    = {Bubeck, S{\'e}bastien},
  title     = {Convex Optimization: Algorithms and Complexity},
  journal   = {Foundations and Trends in Machine Learning},
  volume    = {8},
  number    = {3-4},
  year      = {2015}
}

@inproceedings{karimi2016linear,
  author    = {Karimi, Hamed and Nutini, Julie and Schmidt, Mark},
  title     = {Linear Convergence of Gradient and Proximal-Gradient Methods Under the {Polyak-{\L}ojasiewicz}
               Condition},
  booktitle = {Machine Learning and Knowledge Discovery in Databases ({ECML PKDD})},
  year      = {2016},
  note      = {arXiv:1608.04636}
}

@article{taylor2018exact,
  author    = {Taylor, Adrien B. and Hendrickx, Julien M. and Glineur, Fran{\c c}ois},
  title     = {Exact Worst-Case Convergence Rates of the Proximal Gradient Method for Composite Convex Minimization},
  journal   = {Journal of Optimization Theory and Applications},
  year      = {2018},
  note      = {arXiv:1705.04398}
}

@article{abbaszadehpeivasti2023conditions,
  author    = {Abbaszadehpeivasti, Hadi and de Klerk, Etienne and Zamani, Moslem},
  title     = {Conditions for Linear Convergence of the Gradient Method for Non-Convex Optimization},
  journal   = {Optimization Letters},
  year      = {2023},
  note      = {arXiv:2204.00647}
}

@inproceedings{yu2019computation,
  author    = {Yu, Hao and Jin, Rong},
  title     = {On the Computation and Communication Complexity of Parallel {SGD} with Dynamic Batch Sizes for Stochastic
               Non-Convex Optimization},
  booktitle = {International Conference on Machine Learning},
  year      = {2019},
  note      = {PMLR 97:7174--7183}
}

@article{friedlander2012hybrid,
  author    = {Friedlander, Michael P. and Schmidt, Mark},
  title     = {Hybrid Deterministic-Stochastic Methods for Data Fitting},
  journal   = {SIAM Journal on Scientific Computing},
  volume    = {34},
  year      = {2012}
}

@inproceedings{stich2019local,
  author    = {Stich, Sebastian U.},
  title     = {Local {SGD} Converges Fast and Communicates Little},
  booktitle = {International Conference on Learning Representations},
  year      = {2019},
  note      = {arXiv:1805.09767}
}

@article{thakur2005optimization,
  author    = {Thakur, Rajeev and Rabenseifner, Rolf and Gropp, William},
  title     = {Optimization of Collective Communication Operations in {MPICH}},
  journal   = {International Journal of High Performance Computing Applications},
  volume    = {19},
  number    = {1},
  year      = {2005}
}

@article{patarasuk2009bandwidth,
  author    = {Patarasuk, Pitch and Yuan, Xin},
  title     = {Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations},
  journal   = {Journal of Parallel and Distributed Computing},
  volume    = {69},
  number    = {2},
  year      = {2009}
}

@article{horvitz1952generalization,
  author    = {Horvitz, Daniel G. and Thompson, Donovan J.},
  title     = {A Generalization of Sampling Without Replacement from a Finite Universe},
  journal   = {Journal of the American Statistical Association},
  volume    = {47},
  number    = {260},
  year      = {1952}
}

@inproceedings{malinovskiy2020local,
  author    = {Malinovskiy, Grigory and Kovalev, Dmitry and Gasanov, Elnur and Condat, Laurent and Richtarik, Peter},
  title     = {From Local {SGD} to Local Fixed-Point Methods for Federated Learning},
  booktitle = {International Conference on Machine Learning},
  year      = {2020},
  note      = {PMLR 119, pages 6692-6701}
}

@article{safaryan2021uncertainty,
  author    = {Safaryan, Mher and Shulgin, Egor and Richtarik, Peter},
  title     = {Uncertainty Principle for Communication Compression in Distributed and Federated Learning and the Search
               for an Optimal Compressor},
  journal   = {Information and Inference: A Journal of the IMA},
  year      = {2021},
  note      = {arXiv:2002.08958}
}

@inproceedings{vargaftik2021drive,
  author    = {Vargaftik, Shay and Ben-Basat, Ran and Portnoy, Amit and Mendelson, Gal and Ben-Itzhak, Yaniv
               and Mitzenmacher, Michael},
  title     = {{DRIVE}: One-bit Distributed Mean Estimation},
  booktitle = {Advances in Neural Information Processing Systems 34},
  year      = {2021},
  note      = {arXiv:2105.08339}
}

@inproceedings{vargaftik2022eden,
  author    = {Vargaftik, Shay and Ben Basat, Ran and Portnoy, Amit and Mendelson, Gal and Ben-Itzhak, Yaniv
               and Mitzenmacher, Michael},
  title     = {{EDEN}: Communication-Efficient and Robust Distributed Mean Estimation for Federated Learning},
  booktitle = {International Conference on Machine Learning},
  year      = {2022},
  note      = {arXiv:2108.08842}
}

@misc{zandieh2024qjl,
  author    = {Zandieh, Amir and Daliri, Majid and Han, Insu},
  title     = {{QJL}: 1-Bit Quantized {JL} Transform for {KV} Cache Quantization with Zero Overhead},
  year      = {2024},
  note      = {arXiv:2406.03482}
}

@misc{zandieh2025turboquant,
  author    = {Zandieh, Amir and Daliri, Majid and Hadian, Majid and Mirrokni, Vahab},
  title     = {{TurboQuant}: Online Vector Quantization with Near-optimal Distortion Rate},
  year      = {2025},
  note      = {arXiv:2504.19874}
}

@inproceedings{koloskova2019decentralized,
  author    = {Koloskova, Anastasia and Stich, Sebastian U. and Jaggi, Martin},
  title     = {Decentralized Stochastic Optimization and Gossip Algorithms with Compressed Communication},
  booktitle = {International Conference on Machine Learning},
  year      = {2019},
  note      = {arXiv:1902.00340}
}

@inproceedings{tang2018communication,
  author    = {Tang, Hanlin and Gan, Shaoduo and Zhang, Ce and Zhang, Tong and Liu, Ji},
  title     = {Communication Compression for Decentralized Training},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2018},
  note      = {arXiv:1803.06443}
}

@inproceedings{lian2017decentralized,
  author    = {Lian, Xiangru and Zhang, Ce and Zhang, Huan and Hsieh, Cho-Jui and Zhang, Wei and Liu, Ji},
  title     = {Can Decentralized Algorithms Outperform Centralized Algorithms? A Case Study for Decentralized Parallel
               Stochastic Gradient Descent},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2017},
  note      = {arXiv:1705.09056}
}

@article{nedic2017achieving,
  author    = {Nedi{\'c}, Angelia and Olshevsky, Alex and Shi, Wei},
  title     = {Achieving Geometric Convergence for Distributed Optimization over Time-Varying Graphs},
  journal   = {SIAM Journal on Optimization},
  volume    = {27},
  number    = {4},
  year      = {2017}
}

@article{max1960quantizing,
  author    = {Max, Joel},
  title     = {Quantizing for Minimum Distortion},
  journal   = {IRE Transactions on Information Theory},
  volume    = {6},
  year      = {1960}
}

@inproceedings{kingma2015adam,
  author    = {Kingma, Diederik P. and Ba, Jimmy},
  title     = {{Adam}: A Method for Stochastic Optimization},
  booktitle = {International Conference on Learning Representations},
  year      = {2015},
  note      = {arXiv:1412.6980}
}

@inproceedings{you2020large,
  author    = {You, Yang and Li, Jing and Reddi, Sashank and Hseu, Jonathan and Kumar, Sanjiv and Bhojanapalli,
               Srinadh and Song, Xiaodan and Demmel, James and Keutzer, Kurt and Hsieh, Cho-Jui},
  title     = {Large Batch Optimization for Deep Learning: Training {BERT} in 76 Minutes},
  booktitle = {International Conference on Learning Representations},
  year      = {2020},
  note      = {arXiv:1904.00962}
}

@inproceedings{rajbhandari2020zero,
  author    = {Rajbhandari, Samyam and Rasley, Jeff and Ruwase, Olatunji and He, Yuxiong},
  title     = {{ZeRO}: Memory Optimizations Toward Training Trillion Parameter Models},
  booktitle = {International Conference for High Performance Computing, Networking, Storage and Analysis},
  year      = {2020},
  note      = {arXiv:1910.02054}
}

@article{giles2008multilevel,
  author    = {Giles, Michael B.},
  title     = {Multilevel {Monte Carlo} Path Simulation},
  journal   = {Operations Research},
  volume    = {56},
  number    = {3},
  year      = {2008}
}
"""

BIBTEX = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in _ENTRIES.strip().split("\n\n")}

KNOWLEDGE = {
    "read": "read in the source's own text",
    "quoted": "read at one remove: in a talk, a transcript, a write-up by others, or the code",
    "remembered": "from memory, not checked in a text",
    "derived": "derived here",
}

KNOWN = {
    "abbaszadehpeivasti2023conditions": "remembered",
    "alistarh2017qsgd": "read",
    "bergthomsen2025tight": "quoted",
    "bergthomsen2026tight": "quoted",
    "bottou2018optimization": "read",
    "bubeck2015convex": "read",
    "charikar2002finding": "remembered",
    "eckart1936approximation": "remembered",
    "friedlander2012hybrid": "quoted",
    "giles2008multilevel": "remembered",
    "gorbunov2021marina": "quoted",
    "horvath2022natural": "quoted",
    "horvitz1952generalization": "remembered",
    "karimi2016linear": "quoted",
    "karimireddy2019error": "quoted",
    "kingma2015adam": "read",
    "koloskova2019decentralized": "quoted",
    "lacoste2012simpler": "remembered",
    "li2023contractive": "quoted",  # the authors' talk, which was read, is not the paper
    "lian2017decentralized": "remembered",
    "malinovskiy2020local": "remembered",
    "max1960quantizing": "remembered",
    "mishchenko2019distributed": "remembered",
    "nedic2017achieving": "remembered",
    "nemirovski2009robust": "quoted",
    "patarasuk2009bandwidth": "remembered",
    "polyak1992acceleration": "remembered",
    "rajbhandari2020zero": "quoted",
    "rakhlin2012making": "quoted",
    "ramezani2021nuqsgd": "remembered",
    "richtarik2021ef21": "quoted",
    "safaryan2021uncertainty": "remembered",
    "stich2018sparsified": "quoted",
    "stich2019local": "quoted",
    "tang2018communication": "quoted",
    "tang2021bit": "quoted",
    "taylor2018exact": "remembered",
    "thakur2005optimization": "quoted",
    "vargaftik2021drive": "quoted",
    "vargaftik2022eden": "quoted",
    "vogels2019powersgd": "quoted",
    "wang2018atomo": "remembered",
    "wangni2018gradient": "remembered",
    "wen2017terngrad": "quoted",
    "yin2018gradient": "read",
    "you2020large": "remembered",
    "yu2019computation": "quoted",  # the authors' slides
    "zandieh2024qjl": "quoted",
    "zandieh2025turboquant": "quoted",
}


def source_known(bibtex_key: str) -> str:
    """How a source is known: "read", "quoted" or "remembered".

    Parameters
    ----------
    bibtex_key : str
        A key of :data:`BIBTEX`.

    Returns
    -------
    str
        "remembered" for a source of which nothing is recorded.

    Examples
    --------
    >>> source_known("yin2018gradient"), source_known("nobody1999")
    ('read', 'remembered')
    """
    return KNOWN.get(bibtex_key, "remembered")
