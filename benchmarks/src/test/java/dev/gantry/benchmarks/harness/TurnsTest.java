// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.benchmarks.result.Absence;
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

  private Turns run(int repeats, boolean warmUp, long deadline, Contender... contenders)
      throws Exception {
    Turns turns = new Turns(List.of(contenders), repeats, NEVER, () -> now);
    turns.run(() -> {}, warmUp, deadline);
    return turns;
  }

  @Test
  void eachTurnBeginsWithAnother() throws Exception {
    run(3, true, NEVER, contender("a", 1), contender("b", 1), contender("c", 1));

    assertThat(log).containsExactly("a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c");
  }

  @Test
  void warmUpDoesNotCount() throws Exception {
    Turns warm = run(2, true, NEVER, contender("a", 1));
    assertThat(warm.seconds(0)).containsExactly(1.0, 1.0);
    assertThat(log).hasSize(3);

    log.clear();
    Turns cold = run(2, false, NEVER, contender("a", 1));
    assertThat(cold.seconds(0)).containsExactly(1.0, 1.0);
    assertThat(log).hasSize(2);
  }

  /// A turn takes 3 seconds: two of them fit into 7, and a third would not.
  @Test
  void noTurnBeginsThatWouldPassTheDeadline() throws Exception {
    Turns turns = run(10, false, (long) 7e9, contender("a", 1), contender("b", 2));

    assertThat(turns.seconds(0)).containsExactly(1.0, 1.0);
    assertThat(turns.seconds(1)).containsExactly(2.0, 2.0);
  }

  @Test
  void oneTurnCountsEvenIfTheBlocksShareIsUsedUp() throws Exception {
    Turns turns = run(5, true, 0, contender("a", 1));

    assertThat(turns.seconds(0)).containsExactly(1.0);
    assertThat(log).as("no time to warm up").hasSize(1);
  }

  /// Each of the 4 takes a second, and the time ends after 2.
  @Test
  void whoseTurnHasNotComeWhenTheTimeEndsIsLeftOut() throws Exception {
    List<Contender> contenders =
        List.of(contender("a", 1), contender("b", 1), contender("c", 1), contender("d", 1));
    Turns turns = new Turns(contenders, 3, (long) 2e9, () -> now);
    turns.run(() -> {}, false, NEVER);

    assertThat(log).containsExactly("b", "c");
    assertThat(turns.seconds(0)).isEmpty();
    assertThat(turns.seconds(1)).containsExactly(1.0);
    assertThat(turns.leftOut()).isEqualTo(2);
  }

  @Test
  void whatWasMeasuredIsThereWhileOthersRun() throws Exception {
    List<List<Double>> seen = new ArrayList<>();
    List<Turns> own = new ArrayList<>();
    Contender looking = Contender.of("a", () -> seen.add(own.getFirst().seconds(1)));
    own.add(new Turns(List.of(looking, contender("b", 1)), 1, NEVER, () -> now));
    own.getFirst().run(() -> {}, false, NEVER);

    assertThat(seen).containsExactly(List.of(1.0));
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
    Turns turns = run(2, true, NEVER, contender("a", 1), failing);

    assertThat(turns.seconds(0)).containsExactly(1.0, 1.0);
    assertThat(turns.seconds(1)).isEmpty();
    assertThat(turns.failures()).containsExactly(new Absence("b", "IOException: no such thing"));
    assertThat(turns.leftOut()).isZero();
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

    assertThat(run(1, true, NEVER, library, memory).failures())
        .containsExactly(
            new Absence("a", "UnsatisfiedLinkError: no torch"),
            new Absence("b", "OutOfMemoryError: heap"));
  }

  @Test
  void conditionsThatCannotBeMadeAreAFailure() throws Exception {
    Turns turns = new Turns(List.of(contender("a", 1)), 1, NEVER, () -> now);
    turns.run(
        () -> {
          throw new IOException("pages stay");
        },
        false,
        NEVER);

    assertThat(turns.seconds(0)).isEmpty();
    assertThat(turns.failures()).containsExactly(new Absence("a", "IOException: pages stay"));
  }

  @Test
  void wrongBytesEndTheBench() {
    Contender wrong =
        Contender.of(
            "a",
            () -> {
              throw new WrongBytesException("wrong bytes");
            });
    assertThatThrownBy(() -> run(1, true, NEVER, wrong)).isInstanceOf(WrongBytesException.class);
  }

  @Test
  void conditionsAreMadeBeforeEachRun() throws Exception {
    new Turns(List.of(contender("a", 1), contender("b", 1)), 1, NEVER, () -> now)
        .run(() -> log.add("prepare"), false, NEVER);

    assertThat(log).containsExactly("prepare", "b", "prepare", "a");
  }
}
