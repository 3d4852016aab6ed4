"""kernels: named functions of arrays, each with a plain reference and perhaps a compiled form that equals it."""
