// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.cli.internal.bench.result.Absence;
import dev.gantry.cli.internal.demo.CheckFailedException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The order of runs, what counts, and when it ends: by a clock that moves only where a run says so.
class TurnsTest {
  private static final long NEVER = Long.MAX_VALUE;

  private final List<String> log = new ArrayList<>();
  private long now;

  private Contender contender(String name, double seconds) {
    return new Contender() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public double run() {
        log.add(name);
        now += (long) (seconds * 1e9);
        return seconds;
      }
    };
  }

  private Turns turns(int repeats) {
    return new Turns(repeats, true, () -> now);
  }

  @Test
  void eachTurnBeginsWithAnother() throws Exception {
    turns(3)
        .run(
            List.of(contender("a", 1), contender("b", 1), contender("c", 1)),
            () -> {},
            true,
            NEVER);

    assertThat(log).containsExactly("a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c");
  }

  @Test
  void warmUpDoesNotCount() throws Exception {
    Turns.Outcome warm = turns(2).run(List.of(contender("a", 1)), () -> {}, true, NEVER);
    assertThat(warm.seconds()).containsExactly(List.of(1.0, 1.0));
    assertThat(log).hasSize(3);

    log.clear();
    Turns.Outcome cold = turns(2).run(List.of(contender("a", 1)), () -> {}, false, NEVER);
    assertThat(cold.seconds()).containsExactly(List.of(1.0, 1.0));
    assertThat(log).hasSize(2);
  }

  /// A turn takes 3 seconds: two of them fit into 7, and a third would not.
  @Test
  void noTurnBeginsThatWouldPassTheDeadline() throws Exception {
    Turns.Outcome outcome =
        turns(10).run(List.of(contender("a", 1), contender("b", 2)), () -> {}, false, (long) 7e9);

    assertThat(outcome.seconds()).containsExactly(List.of(1.0, 1.0), List.of(2.0, 2.0));
  }

  @Test
  void oneTurnCountsEvenIfTheTimeIsUsedUp() throws Exception {
    Turns.Outcome outcome = turns(5).run(List.of(contender("a", 1)), () -> {}, true, 0);

    assertThat(outcome.seconds()).containsExactly(List.of(1.0));
    assertThat(log).as("no time to warm up").hasSize(1);
  }

  /// Each of the 4 takes a second, and the time ends after 2.
  @Test
  void aBlockThatMayEndEarlyLeavesOutThoseWhoseTurnHasNotCome() throws Exception {
    List<Contender> contenders =
        List.of(contender("a", 1), contender("b", 1), contender("c", 1), contender("d", 1));
    Turns.Outcome outcome =
        new Turns(3, false, () -> now).run(contenders, () -> {}, false, (long) 2e9);

    assertThat(outcome.seconds()).containsExactly(List.of(), List.of(1.0), List.of(1.0), List.of());
    assertThat(log).containsExactly("b", "c");
  }

  @Test
  void whoFailsRunsNoMoreAndTheOthersGoOn() throws Exception {
    Contender failing =
        Contender.of(
            "b",
            () -> {
              log.add("b");
              throw new IOException("no such thing\nat all");
            });
    Turns.Outcome outcome =
        turns(2).run(List.of(contender("a", 1), failing), () -> {}, true, NEVER);

    assertThat(outcome.seconds()).containsExactly(List.of(1.0, 1.0), List.of());
    assertThat(outcome.failures()).containsExactly(new Absence("b", "IOException: no such thing"));
    assertThat(log).containsExactly("a", "b", "a", "a");
  }

  @Test
  void missingLibrariesAndMemoryAreFailuresLikeOthers() throws Exception {
    Contender library =
        Contender.of(
            "a",
            () -> {
              throw new UnsatisfiedLinkError("no torch");
            });
    Contender memory =
        Contender.of(
            "b",
            () -> {
              throw new OutOfMemoryError("heap");
            });
    Turns.Outcome outcome = turns(1).run(List.of(library, memory), () -> {}, true, NEVER);

    assertThat(outcome.failures())
        .containsExactly(
            new Absence("a", "UnsatisfiedLinkError: no torch"),
            new Absence("b", "OutOfMemoryError: heap"));
  }

  @Test
  void conditionsThatCannotBeMadeAreAFailure() throws Exception {
    Turns.Outcome outcome =
        turns(1)
            .run(
                List.of(contender("a", 1)),
                () -> {
                  throw new IOException("pages stay");
                },
                false,
                NEVER);

    assertThat(outcome.seconds()).containsExactly(List.of());
    assertThat(outcome.failures()).containsExactly(new Absence("a", "IOException: pages stay"));
  }

  @Test
  void wrongBytesEndTheBench() {
    Contender wrong =
        Contender.of(
            "a",
            () -> {
              throw new CheckFailedException("wrong bytes");
            });
    assertThatThrownBy(() -> turns(1).run(List.of(wrong), () -> {}, true, NEVER))
        .isInstanceOf(CheckFailedException.class);
  }

  @Test
  void conditionsAreMadeBeforeEachRun() throws Exception {
    turns(1)
        .run(List.of(contender("a", 1), contender("b", 1)), () -> log.add("prepare"), false, NEVER);

    assertThat(log).containsExactly("prepare", "b", "prepare", "a");
  }
}
