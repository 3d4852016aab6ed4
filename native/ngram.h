// A tick of an n-gram model: layers/counting/ngram.py says how the tree of contexts stands in memory.
#pragma once
#include <algorithm>

#include "steps.h"

constexpr int64_t DEEPEST = 63;  // tokens of a context

template <class S>
struct Contexts {
    const int64_t *keys, *offsets;  // [M] sorted, [M + 1]
    const int32_t* followers;       // [offsets[M]]
    const S *shares, *backoff;      // of each follower; [M]
    int64_t M, n_tokens;            // tokens that may be read
};

// The path [depth + 1] from the root to the longest context that is known; `past` [N] begins with the oldest token.
template <class S>
static int64_t descend(const Contexts<S>& tree, int64_t token, const int64_t* past, int64_t N, int64_t* path) {
    int64_t depth = 0;
    path[0] = 0;
    for (int64_t k = 0; k < N; ++k) {
        const int64_t node = path[depth], key = node * tree.n_tokens + (k ? past[N - k] : token);
        const int64_t *end = tree.keys + tree.M, *found = std::lower_bound(tree.keys + node + 1, end, key);
        if (found == end || *found != key) break;
        path[++depth] = found - tree.keys;
    }
    return depth;
}

// p(w | c) = share(c, w) + backoff(c) p(w | parent of c): from the longest context up, with what is left for the root,
// whose distribution is known
template <class S>
static int interpolated(const Contexts<S>& tree, const int64_t* path, int64_t depth, const S* root, int64_t n,
                        S* p) {
    std::memset(p, 0, n * sizeof(S));
    S left = 1;
    for (; depth > 0; --depth) {
        const int64_t node = path[depth];
        for (int64_t e = tree.offsets[node]; e < tree.offsets[node + 1]; ++e) {
            if (uint64_t(tree.followers[e]) >= uint64_t(n)) return BAD_TOKEN;
            p[tree.followers[e]] += left * tree.shares[e];
        }
        left *= tree.backoff[node];
    }
    const S never = -1e4;  // stands for log 0
    EVERY(j, m) {
        const Vec<S> sum = load(p + j, m) + left * load(root + j, m);
        store(p + j, pick<S>(sum > S(0), vlog(sum), all(never)), m);
    }
    return OK;
}
