# Threads that hold the lock of a shared variable while they sleep.
use strict;
use threads;
use threads::shared;

my $total : shared = 0;
my @threads = map {
    threads->create(sub {
        for (1 .. 20) {
            lock($total);
            $total++;
            select(undef, undef, undef, 0.003);
        }
    })
} 1 .. 4;
$_->join for @threads;
