"""The tape: record a function in NumPy syntax once, then differentiate, count and lower it."""

from linkwright.tape.block import Block
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.program import Program
from linkwright.tape.scalar import Recorder, Scalar
from linkwright.tape.table import Table

__all__ = ["Block", "Program", "ProgramBuilder", "Recorder", "Ref", "Scalar", "Table", "record", "trace"]
