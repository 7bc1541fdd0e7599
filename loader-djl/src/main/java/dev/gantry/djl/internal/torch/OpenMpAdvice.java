package dev.gantry.djl.internal.torch;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// On the CPU, libtorch computes with as many OpenMP threads as there are cores, and these spin
/// while they wait for one another. Where any other thread needs a core, one of them is without for
/// a time slice, and the others burn theirs: with few cores a training is slower by an order of
/// magnitude. The threads are libgomp's, and so are the settings, which it reads when it is loaded.
public final class OpenMpAdvice {
  private static final Logger LOG = LoggerFactory.getLogger(OpenMpAdvice.class);
  private static final AtomicBoolean GIVEN = new AtomicBoolean();

  /// With more, one that is taken away is a smaller part.
  private static final int FEW_CORES = 4;

  /// By which the user has said already what the threads shall do.
  private static final List<String> SETTINGS =
      List.of("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "GOMP_SPINCOUNT", "ai.djl.pytorch.num_threads");

  private OpenMpAdvice() {}

  /// One line in the log of this process, where it is of use.
  public static void logOnce() {
    if (!GIVEN.getAndSet(true)) {
      of(
              Runtime.getRuntime().availableProcessors(),
              name -> System.getenv(name) != null || System.getProperty(name) != null)
          .ifPresent(LOG::info);
    }
  }

  /// @param isSet whether an environment variable or a system property is there
  static Optional<String> of(int cores, Predicate<String> isSet) {
    return cores < 2 || cores > FEW_CORES || SETTINGS.stream().anyMatch(isSet)
        ? Optional.empty()
        : Optional.of(
            "with "
                + cores
                + " cores, OpenMP threads of libtorch that spin may slow a training on the CPU down"
                + " many times: set OMP_WAIT_POLICY=passive in the environment");
  }
}
