# Threads that compute: one lock of the interpreter is all that they wait for.
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)

4.times.map { Thread.new { 40.times { fib(22) } } }.each(&:join)
