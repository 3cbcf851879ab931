"""Sizes and weights of the GPU's drafter, apart from its twin `fixed.py`: they are needed before numpy is there."""

__all__ = ["BLOCK", "BLOCK_KEEPS", "MEMORY_COMMON", "ONE", "OWN_COMMON", "SELECTED", "TRUST"]

BLOCK = 1024
BLOCK_KEEPS = 16
SELECTED = 48
OWN_COMMON = 24
MEMORY_COMMON = 16
ONE = 1 << 20
# 256ths by match length 0 to 8: own side (prompt and reply), memory. Rounded means of what the reference learned on
# replies of two small models.
TRUST = (
    (92, 115, 141, 148, 154, 166, 179, 192, 223),
    (64, 77, 77, 77, 77, 90, 102, 128, 166),
)
