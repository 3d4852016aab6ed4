// A model lowered to a list of operations on registers; one tick of it, or many with the choice of each next input.
//
// A register is a vector of each row, at an offset in the room to work in: offsets are those of one row, and the rows of
// a register of n numbers stand `wide(n)` apart. Weights are one array, its matrices packed as product.h reads them. The
// state is the leaves of a state tree in their order, row-major with the rows first, and ticks work in their memory.
#pragma once
#include "api.h"

enum {  // operations by number, with the fields of Op that they use beside out, n and x
    LOOK_UP = 0,    // out = number * table[token]; a: address of the table, or 0: at `weight`; b: its rows
    INPUT = 1,      // out = the numbers given
    AFFINE = 2,     // out = f(x [k] W + bias + y); a: f, b: how W is kept, c: the scales of what is kept as INT8
    POINTWISE = 3,  // out = g(f(x) . y); a: f, b: ALONE, PLUS or TIMES, c: g
    LOAD = 4,       // out = places a .. a + n of a row of the leaf; d: numbers of such a row
    STORE = 5,      // the reverse, from x
    LSTM_TICK = 6,  // x: sums of i, f, g, o; leaf: h at 0, unless b is -1, and c at a; d as above; out = h
    GRU_TICK = 7,   // x: sums of r, z, n; y = W_h h + b; out and leaf = h
    RESET = 8,      // of a book GRU; x: r, u, n of W_i x + b; y: r, u of W_h h, which x then has too; out = sigmoid(r) h
    UPDATE = 9,     // x: the same after it; y = W_hn (r h); out and leaf = h
    WINDOW = 10,    // out = (taps, x [k]) of the phase; leaf: taps; a: dilation, b: first row, c: counter, d: rows
    ADVANCE = 11,   // the counter goes on by 1, modulo a (0: never)
    GATE = 12,      // out = tanh(x [:n]) sigmoid(x [n:])
    NORM = 13,      // a: which; number: epsilon
    ANGLES = 14,    // out = n / 2 cosines and sines of angles at the counter; number: their base
    ROTATE = 15,    // out = x, heads of width a turned by the angles y, up to k where that is not -1 (then out is x)
    KEEP = 16,      // x [keys, values]: d heads of widths a, b into n heads of the leaves slot, slot + 1; c: window; counter after
    ATTEND = 17,    // out = what the queries x of n heads of width a get; leaves as above; number: scale
    LOOK = 18,      // the same of a source: leaves keys, values, mask, bias
    PLACE = 19,     // out = x + the counter's row of a table [k, n] at `weight`
    WAVES = 20,     // out = sinusoids of width k of the counter + a, and x where it is not -1; number: their base
    UNIT = 21,      // out = the unit vector of the counter
    SOFTMAX = 22,
    JOIN = 23,   // out [n], places a .. a + k = x [k]
    FIRST = 24,  // out = x at the first tick, then 0; leaf: 0 before it, 1 after it
    OUTPUT = 25, // what the tick gives = x
    ALIGN = 26,  // out = what x [k] gets of two kinds of values of widths a, b; leaves: keys, values, values, bias;
                 // weight: v of the scores v . tanh(x + key), or -1: number (x . key)
    PART = 27,   // out = places a .. a + n of x [k]
    BESIDE = 28, // out = row (counter / a) of the leaf, or its last one; the counter is the next leaf
    NGRAM = 29,  // out = log p of what follows the token and the b tokens of the leaf; a: address of the contexts
                 // (ngram.h), weight: p without any context
    MIXTURE = 30 // out = the mixture of k outputs x [k n], number: their temperature; weight, bias, a, b, c: log w, and b,
                 // A, mean, deviation of weights that depend on the position (mixture.h), or bias -1
};
enum { GELU = 4, GELU_TANH = 5, SILU = 6 };  // activations beside those of api.h
enum { ALONE = 0, PLUS = 1, TIMES = 2 };
enum { FULL = 0, BF16 = 1, INT8 = 2 };  // how a matrix is kept; INT8 are whole numbers, times a scale for each of out
enum { LAYER_NORM = 0, RMS_NORM = 1, DEVIATION_NORM = 2 };

struct Op {  // -1: there is none
    int64_t kind, out, n, x, k, y, weight, bias, slot, a, b, c, d;
    double number;
};
struct Program {
    const Op* ops;
    int64_t n_ops;
    const void* weights;
    int64_t n_room;  // numbers that one row needs to work in
};
struct Stream {  // some rows on their way
    int64_t rows;
    void* const* slots;    // the leaves of the state: numbers of the program's type, or counters int64_t [rows]
    const int64_t* rooms;  // positions that each leaf has room for, where that is not fixed
    void* room;            // rows * n_room numbers
    void* scores;          // as many numbers as the longest leaf has positions
};
struct Drawing {  // what is drawn by which settings, and where it goes
    int64_t n_choices, n_ticks, tick;  // ticks that are behind the rows
    double temperature, top_p, penalty;
    int64_t top_k, n_never, n_stops, n_given;
    const int64_t *never, *stops, *given, *lengths, *ends;  // given [rows, n_given], lengths and ends [rows]
    const uint64_t* keys;                                   // [rows] of the noise
    uint8_t *alive, *seen;                                  // [rows], [rows, n_choices] or null
    void *y, *room;                                         // [rows, n_choices], [3, n_choices] of the program's type
    int64_t* tokens;                                        // [rows, n_ticks], as are the next three
    uint8_t *active, *stopped;
    double* log_p;
    int64_t n_done, row;  // ticks that were made; the row that had no choice
};

// a digest of some memory, of which a change of any bit changes the result
EXPORT uint64_t digest(const void* data, int64_t bytes, uint64_t before);

#define DECLARE_PROGRAM(S, NAME)                                                                                       \
    /* numbers of a packed matrix [K, n]; and W(k, j) = w[k * by_k + j * by_j] as programs read it */                  \
    EXPORT int64_t packed_numbers_##NAME(int64_t K, int64_t n);                                                        \
    EXPORT int pack_##NAME(int64_t K, int64_t n, const S* w, int64_t by_k, int64_t by_j, S* out);                      \
    /* one tick: tokens [rows] or numbers [rows, D] -> y [rows, D'] */                                                 \
    EXPORT int step_##NAME(const Program* program, const Stream* stream, const int64_t* tokens, const S* numbers,      \
                           S* y);                                                                                      \
    /* up to n_ticks choices of each row, every one the next input; y begins and ends as the last outputs */           \
    EXPORT int draw_##NAME(const Program* program, const Stream* stream, Drawing* drawing);

// the same of matrices in fewer bits, for programs of f32; the numbers of a packed one are as many
EXPORT int pack_bf16(int64_t K, int64_t n, const uint16_t* w, int64_t by_k, int64_t by_j, uint16_t* out);
EXPORT int pack_int8(int64_t K, int64_t n, const int8_t* w, int64_t by_k, int64_t by_j, int8_t* out);

DECLARE_PROGRAM(float, f32)
DECLARE_PROGRAM(double, f64)
