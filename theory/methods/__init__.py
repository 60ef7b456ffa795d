"""Methods, and feedback rules for the error of a worker's messages."""

from ..core.arguments import lists_itself
from .adaptive.adam import LAMB, Adam, Sharded
from .adaptive.one_bit import OneBitAdam, Signum
from .adaptive.recipes import conef_adam, conef_lamb, ef_adam, ef_lamb
from .batches import cr_psgd
from .custom import method
from .delay.late import AsyncSGD, DelayedSGD, FixedTime, Pareto, ShiftedExponential, arrivals
from .delay.lock_free import run_lock_free
from .differences.both_ways import EF21BC, EF21P
from .differences.diana import DCGD, DIANA, QSVRG
from .differences.econtrol import EControl
from .differences.ef21 import CLAG, EF21, EF21SGDM, EFBV
from .differences.marina import DASHA, MARINA, VRMARINA
from .differences.muon import EF21Muon
from .gradients import Split, UnequalPartsWarning
from .graphs.compressed import DCDPSGD, ECDPSGD, ChocoSGD
from .graphs.gossip import DPSGD, ChocoGossip, Gossip, GradientTracking
from .graphs.weights import Complete, Edges, Hypercube, Mixing, MixingMatrix, Ring, Star, Torus, mixing
from .local.clients import SCAFFOLD, FedAvg, FedProx, split
from .local.local_sgd import LocalSGD
from .local.prox_skip import ProxSkip
from .local.streaming import StreamingDiLoCo
from .memory.contractive import ContractiveErrorFeedback, ImprovedContractiveErrorFeedback, LinearSketchFeedback
from .memory.error_feedback import ErrorFeedback, NoFeedback, PartialErrorFeedback
from .memory.mem_sgd import mem_sgd
from .memory.stability import BiasedErrorCompressorWarning, UnstableMemoryWarning
from .robust.attacks import ALIE, Attack, Attacked, InnerProduct, Mimic, OneSided, Scaling, SignFlip
from .robust.rules import NNM, Bucketing, CenteredClipping, GeometricMedian, Krum, Median, MultiKrum, TrimmedMean
from .robust.servers import Robust, robust_mean
from .server import Majority, Mean, Momentum, OuterStep, Projected
from .sgd import ParallelSGD
from .theory_steps import DenseStepWarning, LongStepWarning, NoTheoremError, TheoryStep, theory_step
from .topology import AllGather, AllReduce, ParameterServer, ReduceScatter, travelling

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
    "EControl",
    "EF21",
    "EF21BC",
    "EF21Muon",
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
    "StreamingDiLoCo",
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
