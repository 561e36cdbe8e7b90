// What a program says without being run.
#include <string>

#include "io/importers/key_table.h"
#include "io/importers/python_program.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

// The value of the last call's argument `x`, as text; "?" where the program computes it.
std::string value_of_x(const std::string& program, const std::map<std::string, Value>& flags = {}) {
  const io::PythonProgram read(program, flags);
  for (auto call = read.calls().rbegin(); call != read.calls().rend(); ++call) {
    if (const io::PythonArgument* x = call->find("x")) {
      const std::optional<Value> value = read.evaluate(x->value);
      return value ? io::value_text(*value) : "?";
    }
  }
  return "no call";
}

}  // namespace

TEST_CASE("values of a program that are written down") {
  struct Case {
    const char *program, *value;
  };
  const Case cases[] = {
      {"f(x=4)", "4"},
      {"f(x=1_000)", "1000"},
      {"f(x=-2)", "-2"},
      {"f(x=2e-4)", "2e-4"},
      {"f(x='a' \"b\")", "ab"},
      {"f(x='a' + 'b')", "ab"},
      {"f(x=f'{y}')", "?"},
      {"f(x=f'plain')", "plain"},
      {"f(x=\"\"\"two\nlines\"\"\")", "two\nlines"},
      {"f(x=True)", "true"},
      {"f(x=not True)", "false"},
      {"f(x=None)", "null"},
      {"f(x=torch.bfloat16)", "bfloat16"},
      {"f(x=2 * (3 + 4) // 2)", "7"},
      {"f(x=2 * g(3))", "?"},
      {"f(x=9223372036854775807 + 1)", "?"},
      {"f(x=[1, 2] + [3])", "[1, 2, 3]"},
      {"f(x=(1, 2,))", "[1, 2]"},
      {"f(x=(1))", "1"},
      {"f(x=[i for i in y])", "?"},
      {"n = 3\nf(x=n)\nn = 4", "3"},
      {"n = 3\nn = 4\nf(x=n)", "4"},
      {"n = n + 1\nf(x=n)", "?"},
      {"n = 2\nn = n + 1\nf(x=n)", "3"},
      {"def g(n=3, m: int = 5):\n  f(x=m)", "5"},
      {"class C:\n  n: int = 7\nc = C()\nf(x=c.n)", "7"},
      {"class C:\n  n = field(default=8)\nf(x=C.n)", "8"},
      {"d = {'a': {'b': 6}}\nf(x=d['a']['b'])", "6"},
      {"d = dict(a=6)\nf(x=d['a'])", "6"},
      {"d = [5, 6]\nf(x=d[1])", "6"},
      {"d = [5, 6]\nf(x=d[2])", "?"},
      {"f(x=1 if True else 2)", "1"},
      {"f(x=1 if g() else 2)", "?"},
      {"f(x=None or 3)", "3"},
      {"f(x=os.environ.get('A', '3'))", "3"},
      {"f(x=int(os.environ.get('A', '3')))", "3"},
      {"f(x=os.environ['A'])", "?"},
      {"p.add_argument('-b', '--batch-size', type=int, default=4)\na = p.parse_args()\nf(x=a.batch_size)", "4"},
      {"f(x=# why\n  4)", "4"},
      {"f(y=[(x, 1)], x = g)", "?"},
      {"f(x=4", "?"},
      {"f(x=", "?"},
      {"f(x=1 if torch.cuda.is_available() else 2)", "1"},
      {"n = 8\nf(x=n == 8 and n < 9)", "true"},
      {"f(x=4 in [2, 4])", "true"},
      {"f(x='a' not in 'bcd')", "true"},
      {"f(x=None is not None)", "false"},
      {"f(x=y == 3)", "?"},
      {"f(x=False and g())", "false"},
      {"n = 'b'\nf(x=f'a-{n}')", "a-b"},
      {"f(x=f'a-{n.m()}')", "?"},
      {"f(x=getattr(torch, 'float16'))", "float16"},
      {"n = 'q, v'\nf(x=n.split(','))", "[q, v]"},
      {"f(x=max(3, len([1, 2])))", "3"},
      {"f(x=torch.cuda.get_device_capability()[0] >= 8)", "true"},
      {"class C:\n  n = field(default_factory=lambda: [1])\nf(x=C.n)", "[1]"},
      {"p.add_argument('--deep', action='store_true')\nf(x=a.deep)", "false"},
      {"def g(n):\n  f(x=n)\ng(4)", "4"},
      {"def g(m, n=3):\n  f(x=n)\ng(1, n=4)", "4"},
      {"def g(n=3):\n  f(x=n)\ng(4)\ng(5)", "3"},
      {"def g(n=3):\n  pass\nf(x=n)", "?"},
      {"def g():\n  f(x=n)\nn = 4", "4"},
      {"n = 2\nif True:\n  n = 3\nelse:\n  n = 4\nf(x=n)", "3"},
      {"n = 2\nif n > 5:\n  n = 3\nelif n == 2:\n  n = 5\nf(x=n)", "5"},
      {"n = 2\nif g():\n  n = 3\nf(x=n)", "3"},
      {"n = 2\nif n > 5:\n  n = 3\n\n  # why\n  n = 4\nf(x=n)", "2"},
  };
  for (const Case& one : cases) {
    INFO(one.program);
    CHECK(value_of_x(one.program) == one.value);
  }
}

TEST_CASE("words of the command line go before the defaults of a program's parser") {
  CHECK(value_of_x("p.add_argument('--n', default=4)\nf(x=args.n)", {{"n", Value::of(9)}}) == "9");
}

TEST_CASE("calls of branches that never run are left out, and names lead to calls") {
  const io::PythonProgram program(
      "if False:\n  a(1)\nif g():\n  b(2)\nc = d(x=3)\nwith open('f', 'w') as e:\n  h(e, c)\n");
  std::string names;
  for (const io::PythonCall& call : program.calls()) names += call.name + " ";
  CHECK(names == "g b d open h ");
  CHECK(program.is_doubtful(program.calls()[1].at));
  const io::PythonCall& last = program.calls().back();
  REQUIRE(program.call_of(last.arguments[0].value) != nullptr);
  CHECK(program.call_of(last.arguments[0].value)->name == "open");
  CHECK(program.call_of(last.arguments[1].value)->name == "d");
  CHECK(program.call_named("c")->name == "d");
  CHECK(program.call_named("z") == nullptr);
}

TEST_CASE("names that stand for one another end") {
  CHECK(value_of_x("a = b\nb = a\nf(x=a)") == "?");
  std::string program = "n0 = 1\n";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "n" + std::to_string(i - 1);
    program += "n" + std::to_string(i) + " = " + before + " + " + before + "\n";
  }
  CHECK(value_of_x(program + "f(x=n59)") == "?");
}

}  // namespace membill::importers_test
