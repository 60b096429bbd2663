// Names in C++: members without this, references, namespaces, exceptions on the way.
#include <stdexcept>
#include <vector>
namespace ns { int counter = 1; }
struct Base { int id = 4; };
struct Account : Base {
  int balance = 10;
  static int total;
  int history[3] = {1, 2, 3};
  void deposit(int n) {
    // EXPECT: read balance = 10
    // EXPECT: write balance = (add balance 5)
    balance += n;
    // EXPECT: read total = 0
    total += n;
    // EXPECT: read id = 4
    if (id > 3) history[n - 4] = 7;
    // EXPECT: write history[n - 4] = 7
  }
  int peek() const { return balance; }
};
int Account::total = 0;
Account account;
int out;
void change(int& r) { r = r + 1; }
int thrower(int n) {
  if (n > 14) throw std::runtime_error("big");
  return n;
}
int main() {
  account.deposit(5);
  // EXPECT: read counter = 1
  // EXPECT: write counter = (add counter 1)
  ns::counter++;
  // EXPECT: read r = 2
  // EXPECT: write r = (add r 1)
  change(ns::counter);
  // EXPECT: write out = balance
  out = account.peek();
  try {
    // EXPECT: branch if (slt 14 balance) = 1
    out = thrower(account.peek());
  } catch (const std::exception&) {
    // EXPECT: write out = -1
    out = -1;
  }
  // EXPECT: alloc operator new 20
  Account* made = new Account;
  // EXPECT: write made->balance = 77
  made->balance = 77;
  delete made;
  std::vector<int> v{1, 2, 3};
  for (int e : v) out += e;
  return out != 5;
}
