/* Blocked LU factorisation without pivoting, two threads with barriers, as in the SPLASH-2 suite. The matrix is stored by
 * blocks; a block is owned by one thread. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2

static int n, block, blocks;
static double** matrix; /* blocks * blocks pointers to block * block numbers */
static pthread_barrier_t barrier;

static int owner(int i, int j) { return (i + j) % THREADS; }

static void factor_diagonal(double* a) {
  for (int k = 0; k < block; ++k)
    for (int i = k + 1; i < block; ++i) {
      a[i * block + k] /= a[k * block + k];
      for (int j = k + 1; j < block; ++j) a[i * block + j] -= a[i * block + k] * a[k * block + j];
    }
}

static void solve_row(double* a, const double* diagonal) {
  for (int k = 0; k < block; ++k)
    for (int i = k + 1; i < block; ++i) {
      double factor = diagonal[i * block + k];
      for (int j = 0; j < block; ++j) a[i * block + j] -= factor * a[k * block + j];
    }
}

static void solve_column(double* a, const double* diagonal) {
  for (int i = 0; i < block; ++i)
    for (int k = 0; k < block; ++k) {
      a[i * block + k] /= diagonal[k * block + k];
      for (int j = k + 1; j < block; ++j) a[i * block + j] -= a[i * block + k] * diagonal[k * block + j];
    }
}

static void update(double* c, const double* a, const double* b) {
  for (int i = 0; i < block; ++i)
    for (int k = 0; k < block; ++k) {
      double factor = a[i * block + k];
      for (int j = 0; j < block; ++j) c[i * block + j] -= factor * b[k * block + j];
    }
}

static void* run(void* argument) {
  int me = (int)(long)argument;
  for (int k = 0; k < blocks; ++k) {
    if (owner(k, k) == me) factor_diagonal(matrix[k * blocks + k]);
    pthread_barrier_wait(&barrier);
    for (int i = k + 1; i < blocks; ++i) {
      if (owner(k, i) == me) solve_row(matrix[k * blocks + i], matrix[k * blocks + k]);
      if (owner(i, k) == me) solve_column(matrix[i * blocks + k], matrix[k * blocks + k]);
    }
    pthread_barrier_wait(&barrier);
    for (int i = k + 1; i < blocks; ++i)
      for (int j = k + 1; j < blocks; ++j)
        if (owner(i, j) == me) update(matrix[i * blocks + j], matrix[i * blocks + k], matrix[k * blocks + j]);
    pthread_barrier_wait(&barrier);
  }
  return 0;
}

int main(int argc, char** argv) {
  n = argc > 1 ? atoi(argv[1]) : 256;
  block = 16;
  blocks = n / block;
  matrix = malloc(sizeof *matrix * blocks * blocks);
  unsigned seed = 1;
  for (int i = 0; i < blocks * blocks; ++i) {
    matrix[i] = malloc(sizeof **matrix * block * block);
    for (int j = 0; j < block * block; ++j) {
      seed = seed * 1103515245u + 12345u;
      matrix[i][j] = (double)(seed >> 16 & 1023) / 1024.0 + ((i % (blocks + 1) == 0 && j % (block + 1) == 0) ? n : 0);
    }
  }
  pthread_barrier_init(&barrier, 0, THREADS);
  pthread_t t[THREADS];
  for (long i = 0; i < THREADS; ++i) pthread_create(&t[i], 0, run, (void*)i);
  for (int i = 0; i < THREADS; ++i) pthread_join(t[i], 0);
  double sum = 0;
  for (int i = 0; i < blocks * blocks; ++i)
    for (int j = 0; j < block * block; ++j) sum += fabs(matrix[i][j]);
  printf("%.6f\n", sum);
  return 0;
}
