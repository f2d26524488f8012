"""A program: data only, hashed, the same for every step of a job.

* **Section**: static single assignment. Values are numbered: the inputs first, then one
  value for each instruction in order; an instruction uses only smaller numbers.
* **Gradient section**: (parameters, buffers, data, context) -> (loss, one gradient for each
  trainable parameter, buffers). It runs once for each shard of a step.
* **Update section**: (parameters, gradients, optimizer, data, context) -> (parameters,
  optimizer). Gradients are the tree sum over the shards, times 1/shards. Its context is that
  of shard 0.
* **Data**: tensors of the job that no step changes: examples, tables, the schedule. The
  sampler and the schedule are ordinary operators over data and context.
* **Context**: int64[6] = job key (2 words), step key (2 words), step, shard.
* **State**: parameters, buffers, optimizer, then ``loss`` (float32 scalar, the tree sum of
  the shards' losses times 1/shards, written by each step and read by none).

Spec: docs/spec/program.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Unsigned
from identic.protocol.tensors import TensorType

CONTEXT_TYPE = TensorType.of(DType.INT64, (6,))
LOSS_TYPE = TensorType.of(DType.FLOAT32, ())


@dataclass(frozen=True)
class Attribute:
    """A named list of integers; a single value is a list of one."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class Instruction:
    """One operator applied to earlier values."""

    op: str
    """Name in the operator table."""
    inputs: tuple[Unsigned, ...]
    """Value numbers, each smaller than the instruction's own."""
    attributes: tuple[Attribute, ...]
    """In alphabetical order of their names."""
    output: TensorType
    """Declared type; a node infers it again and refuses a difference."""


@dataclass(frozen=True)
class Section:
    """Straight-line code over numbered values."""

    inputs: tuple[TensorType, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Unsigned, ...]


@dataclass(frozen=True)
class Variable:
    """A named tensor of the state or the data."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Program:
    """Everything a node needs to run a step, except the tensors themselves."""

    version: Count
    """1."""
    shards: Count
    """How many pieces a batch falls into; at least 1."""
    examples: Count
    """Examples one shard takes in one step; the cursor moves by ``shards * examples``."""
    parameters: tuple[Variable, ...]
    trainable: tuple[Unsigned, ...]
    """Indices into ``parameters``, ascending: those with a gradient."""
    buffers: tuple[Variable, ...]
    optimizer: tuple[Variable, ...]
    data: tuple[Variable, ...]
    gradient: Section
    update: Section

    @property
    def state(self) -> tuple[Variable, ...]:
        """Tensors of the state, in the order of its tree."""
        return (*self.parameters, *self.buffers, *self.optimizer, Variable("loss", LOSS_TYPE))
