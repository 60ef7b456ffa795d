"""Methods, and feedback rules for what a worker did not send."""

from ..core.rooms import lists_itself
from .adaptive import LAMB, Adam
from .adaptive_recipes import conef_adam, conef_lamb, ef_adam, ef_lamb
from .asynchronous import AsyncSGD, arrivals
from .attacks import ALIE, Attack, Attacked, InnerProduct, Mimic, OneSided, Scaling, SignFlip
from .choco_sgd import ChocoSGD
from .clients import SCAFFOLD, FedAvg, FedProx
from .conef import ContractiveErrorFeedback
from .custom import method
from .dasha import DASHA
from .delayed import DelayedSGD
from .dense_steps import DenseStepWarning
from .diana import DCGD, DIANA
from .difference_gossip import DCDPSGD, ECDPSGD
from .dpsgd import DPSGD
from .ef21 import EF21, EF21SGDM
from .ef21_both_ways import EF21BC, EF21P
from .ef_bv import EFBV
from .feedback import ErrorFeedback, NoFeedback
from .gossip import ChocoGossip, Gossip
from .gradient_tracking import GradientTracking
from .graphs import Complete, Edges, Hypercube, Mixing, MixingMatrix, Ring, Star, Torus, mixing
from .iconef import ImprovedContractiveErrorFeedback
from .lazy import CLAG
from .linear_sketch import LinearSketchFeedback
from .local_sgd import LocalSGD
from .lock_free import run_lock_free
from .long_steps import LongStepWarning
from .marina import MARINA, VRMARINA
from .one_bit_adam import OneBitAdam
from .partial_ef import PartialErrorFeedback
from .prox_skip import ProxSkip
from .qsvrg import QSVRG
from .recipes import cr_psgd, mem_sgd
from .robust import Robust, robust_mean
from .robust_mixing import NNM, Bucketing, CenteredClipping
from .robust_rules import GeometricMedian, Krum, Median, MultiKrum, TrimmedMean
from .sampling import Split, UnequalPartsWarning
from .server import Majority, Mean, Momentum, OuterStep, Projected
from .sgd import ParallelSGD
from .sharded import Sharded
from .signum import Signum
from .splits import split
from .stability import BiasedErrorCompressorWarning, UnstableMemoryWarning
from .theory_steps import NoTheoremError, TheoryStep, theory_step
from .topology import AllGather, AllReduce, ParameterServer, ReduceScatter
from .under_way import travelling
from .worker_times import FixedTime, Pareto, ShiftedExponential

__all__ = [
    "ALIE",
    "Adam",
    "AllGather",
    "AllReduce",
    "Attack",
    "Attacked",
    "BiasedErrorCompressorWarning",
    "Bucketing",
    "CLAG",
    "CenteredClipping",
    "ChocoGossip",
    "ChocoSGD",
    "Complete",
    "ContractiveErrorFeedback",
    "DASHA",
    "DCDPSGD",
    "DCGD",
    "DIANA",
    "DPSGD",
    "DelayedSGD",
    "DenseStepWarning",
    "ECDPSGD",
    "EF21",
    "EF21BC",
    "EF21P",
    "EF21SGDM",
    "EFBV",
    "Edges",
    "ErrorFeedback",
    "FedAvg",
    "FedProx",
    "GeometricMedian",
    "Gossip",
    "GradientTracking",
    "Hypercube",
    "ImprovedContractiveErrorFeedback",
    "InnerProduct",
    "Krum",
    "LAMB",
    "LinearSketchFeedback",
    "LocalSGD",
    "LongStepWarning",
    "UnequalPartsWarning",
    "MARINA",
    "Majority",
    "Mean",
    "Median",
    "Mimic",
    "Mixing",
    "MixingMatrix",
    "Momentum",
    "MultiKrum",
    "NNM",
    "NoFeedback",
    "NoTheoremError",
    "OneBitAdam",
    "OneSided",
    "OuterStep",
    "ParallelSGD",
    "ParameterServer",
    "PartialErrorFeedback",
    "Projected",
    "ProxSkip",
    "QSVRG",
    "ReduceScatter",
    "Ring",
    "Robust",
    "SCAFFOLD",
    "Scaling",
    "Sharded",
    "SignFlip",
    "Signum",
    "Split",
    "Star",
    "TheoryStep",
    "Torus",
    "TrimmedMean",
    "UnstableMemoryWarning",
    "VRMARINA",
    "conef_adam",
    "conef_lamb",
    "cr_psgd",
    "ef_adam",
    "ef_lamb",
    "mem_sgd",
    "method",
    "mixing",
    "robust_mean",
    "run_lock_free",
    "split",
    "theory_step",
    "travelling",
    "AsyncSGD",
    "FixedTime",
    "Pareto",
    "ShiftedExponential",
    "arrivals",
]

lists_itself(__name__)
