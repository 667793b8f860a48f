"""The numbers by which kernels compute sines and cosines of doubles: reduction to [−π/4, π/4], then polynomials.

With n = x · 2/π rounded, r = x − n · π/2 in three parts, z = r²:
sin r = r + r z S(z), cos r = 1 − z/2 + z² C(z), by fused multiplications and additions, within 2 ulp.
"""

QUADRANTS = 0.6366197723675814  # 2/π
#: Added and subtracted, it rounds to a whole number, whose last bits are those of the sum.
ROUNDING = 6755399441055744.0
# π/2 in three parts, the first two of 37 bits: for the n of 16 bits that the fast path meets, x − n·part is exact
# with the first, rounded at most once where it counts with the second, and the third adds what is left.
HALF_PI = (1.5707963267923333e00, 2.5633441515839558e-12, 1.0562999066987428e-23)
LIMIT = 65_536.0  # beyond this argument libm reduces
# π/2 in three doubles: the first product and difference, in one rounding, is a multiple of 2⁻⁵² below 1, so exact.
WIDE_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
WIDE_LIMIT = 2.0**40

# Minimax polynomials for sin and cos on [−π/4, π/4] (Cephes' coefficients).
SIN = (
    1.58962301576546568060e-10,
    -2.50507477628578072866e-8,
    2.75573136213857245213e-6,
    -1.98412698295895385996e-4,
    8.33333333332211858878e-3,
    -1.66666666666666307295e-1,
)
COS = (
    -1.13585365213876817300e-11,
    2.08757008419747316778e-9,
    -2.75573141792967388112e-7,
    2.48015872888517045348e-5,
    -1.38888888888730564116e-3,
    4.16666666666665929218e-2,
)
