// The likeliest continuations of some beams, as decode/likeliest.py has them:
//
//     log p(k | beam) = log p(beam) + y_k - lse(y),        lse(y) = max y + log sum_k exp(y_k - max y)
//
// Logits are read twice. They are cut into blocks, and a block is looked at only if its largest one is good enough.
#include "api.h"
#include "choose.h"

namespace {

constexpr int64_t BLOCK = 64, APART = 32;  // logits; registers that are summed before their sum becomes double

// lse of y [V]; NaN where it is not finite
template <class S>
double log_sum_exp(const S* y, int64_t V) {
    const S best = largest(y, V);
    if (!(best - best == 0)) return NAN;
    const int64_t n = V;
    double sum = 0;
    Vec<S> some = {};
    int64_t left = APART;
    EVERY(j, m) {
        Vec<S> e = chance<S>(load(y + j, m) - best);
        if (m < WIDTH<S>)
            for (int64_t i = m; i < WIDTH<S>; ++i) e[i] = 0;
        some += e;
        if (--left == 0) sum += total<S>(some), some = Vec<S>{}, left = APART;
    }
    return double(best) + std::log(sum + total<S>(some));
}

template <class S>
S largest_of(const S* y, int64_t n) {
    Vec<S> best = all(-S(INFINITY));
    int64_t j = 0;
    for (; j + WIDTH<S> <= n; j += WIDTH<S>) {
        const Vec<S> v = load(y + j);
        best = pick<S>(v > best, v, best);
    }
    S found = -S(INFINITY);
    for (int64_t i = 0; i < WIDTH<S>; ++i) found = best[i] > found ? best[i] : found;
    for (; j < n; ++j) found = y[j] > found ? y[j] : found;
    return found;
}

struct Best {  // the n best so far, best first
    int64_t n, count;
    double* values;
    int64_t* places;

    void offer(double value, int64_t place) {
        if (count == n && !(value > values[n - 1])) return;
        int64_t i = count < n ? count++ : n - 1;
        for (; i > 0 && values[i - 1] < value; --i) values[i] = values[i - 1], places[i] = places[i - 1];
        values[i] = value, places[i] = place;
    }
    bool takes(double value) const { return count < n || value > values[n - 1]; }
};

template <class S>
int likeliest(int64_t L, int64_t w, int64_t V, int64_t n, const S* y, const double* log_p, double* values, int64_t* places) {
    if (L < 1 || w < 1 || V < 1 || n < 1 || n > w * V) return BAD_SIZE;
    if (!y || !log_p || !values || !places) return BAD_POINTER;
    for (int64_t l = 0; l < L; ++l) {
        Best best = {n, 0, values + l * n, places + l * n};
        for (int64_t b = 0; b < w; ++b, y += V) {
            const double offset = log_p[l * w + b] - log_sum_exp(y, V);
            if (offset != offset) return NO_CHOICE;
            for (int64_t k = 0; k < V; k += BLOCK) {
                const int64_t end = k + BLOCK < V ? k + BLOCK : V;
                if (!best.takes(offset + double(largest_of(y + k, end - k)))) continue;
                for (int64_t j = k; j < end; ++j) best.offer(offset + double(y[j]), b * V + j);
            }
        }
    }
    return OK;
}

}  // namespace

int likeliest_f32(int64_t L, int64_t w, int64_t V, int64_t n, const float* y, const double* log_p, double* values,
                  int64_t* places) {
    return likeliest<float>(L, w, V, n, y, log_p, values, places);
}
int likeliest_f64(int64_t L, int64_t w, int64_t V, int64_t n, const double* y, const double* log_p, double* values,
                  int64_t* places) {
    return likeliest<double>(L, w, V, n, y, log_p, values, places);
}
