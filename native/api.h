// What a library of kernels offers: plain C, so that one library serves every version of Python and of torch.
//
// Every function returns OK or one of the other codes, allocates nothing and keeps nothing between calls; whoever calls
// provides the room to work in (`*_room` numbers of it, of the same type). Arrays are row-major and time-major: B rows,
// T ticks, N units, D inputs. A trailing _f32 or _f64 names the type of the numbers.
#pragma once
#include <cstdint>

#define UNROLLED_ABI 4  // rises whenever a signature or a meaning changes; kernels/native.py must ask for the same

enum { OK = 0, BAD_SIZE = 1, NO_ROOM = 2, BAD_POINTER = 3, UNKNOWN = 4, BAD_TOKEN = 5, TOO_LONG = 6, NO_CHOICE = 7 };
enum { TANH = 0, RELU = 1, SIGMOID = 2, IDENTITY = 3 };  // activations by number
enum { GRU = 0, BOOK_GRU = 1, LSTM = 2, ELMAN = 3 };     // recurrences by number

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int unrolled_abi();
EXPORT const char* unrolled_level();
EXPORT int64_t recurrence_room(int kind, int backward, int64_t B, int64_t N, int64_t bytes);

#define DECLARE(S, NAME)                                                                                               \
    /* r, z, n of h = (1 - z) n + z h': a [T, B, 3N] holds W_ih x + b and is overwritten by r, z, n; q = W_hn h' + b_n  \
       [T, B, N]; h [T + 1, B, N] begins with h_0; W [3N, N] */                                                        \
    EXPORT int gru_forward_##NAME(int64_t T, int64_t B, int64_t N, S* a, S* q, S* h, const S* W, const S* b_n,         \
                                  S* room, int64_t n_room, int64_t threads);                                              \
    /* from g = dC/dh_t (strides in numbers) and dh = dC/dh_T [B, N], overwritten by dC/dh_0, to d [T, B, 4N]: the      \
       gradients of q and of the sums in r, z, n */                                                                    \
    EXPORT int gru_backward_##NAME(int64_t T, int64_t B, int64_t N, const S* a, const S* q, const S* h, const S* W,    \
                                   const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* room, int64_t n_room,  \
                                   int64_t threads);                                                                      \
    /* r, u, n of h = (1 - u) h' + u n; a [T, B, 3N] as above, s = r h' [T, B, N] */                                   \
    EXPORT int book_gru_forward_##NAME(int64_t T, int64_t B, int64_t N, S* a, S* s, S* h, const S* W, S* room,         \
                                       int64_t n_room, int64_t threads);                                                  \
    /* d [T, B, 3N]: the gradients of the sums in r, u, n */                                                           \
    EXPORT int book_gru_backward_##NAME(int64_t T, int64_t B, int64_t N, const S* a, const S* h, const S* W,           \
                                        const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* room,             \
                                        int64_t n_room, int64_t threads);                                                 \
    /* a [T, B, 4N] is overwritten by i, f, g, o; h and c [T + 1, B, N] begin with h_0 and c_0; k = tanh(c) [T, B, N] */ \
    EXPORT int lstm_forward_##NAME(int64_t T, int64_t B, int64_t N, S* a, S* k, S* h, S* c, const S* W, S* room,       \
                                   int64_t n_room, int64_t threads);                                                      \
    /* dh, dc [B, N] are overwritten by dC/dh_0, dC/dc_0; d [T, B, 4N]: the gradients of the sums in i, f, g, o */      \
    EXPORT int lstm_backward_##NAME(int64_t T, int64_t B, int64_t N, const S* a, const S* k, const S* c, const S* W,   \
                                    const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* dc, S* d, S* room,          \
                                    int64_t n_room, int64_t threads);                                                     \
    /* h = sigma(W h' + a_t): a [T, B, N], h [T + 1, B, N] begins with h_0 */                                          \
    EXPORT int elman_forward_##NAME(int64_t T, int64_t B, int64_t N, int64_t activation, const S* a, S* h, const S* W,     \
                                    S* room, int64_t n_room, int64_t threads);                                            \
    EXPORT int elman_backward_##NAME(int64_t T, int64_t B, int64_t N, int64_t activation, const S* h, const S* W,          \
                                     const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* room,                \
                                     int64_t n_room, int64_t threads);                                                    \
    /* h_t = a_t h_{t-1} + b_t, all [B, T, N] (batch-major), h_0 [B, N] */                                             \
    EXPORT int diagonal_forward_##NAME(int64_t B, int64_t T, int64_t N, const S* a, const S* b, const S* h_0, S* h);   \
    /* g = dC/dh [B, T, N] -> da, db [B, T, N], dh_0 [B, N] */                                                         \
    EXPORT int diagonal_backward_##NAME(int64_t B, int64_t T, int64_t N, const S* a, const S* h_0, const S* h,         \
                                        const S* g, S* da, S* db, S* dh_0);                                            \
    /* the n best continuations of L examples with w beams each, best first: logits y [L w, V], log p of the beams     \
       [L, w] -> log p of the whole [L, n] and beam * V + token [L, n]; NO_CHOICE where logits are not finite */       \
    EXPORT int likeliest_##NAME(int64_t L, int64_t w, int64_t V, int64_t n, const S* y, const double* log_p,           \
                                double* values, int64_t* places);

DECLARE(float, f32)
DECLARE(double, f64)
