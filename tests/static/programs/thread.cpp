// Line numbers are part of the test.
#include <thread>

int counter;

int main() {
  std::thread worker([] {
    counter = 1;
  });
  int before = 0;
  worker.join();
  return counter + before;
}
