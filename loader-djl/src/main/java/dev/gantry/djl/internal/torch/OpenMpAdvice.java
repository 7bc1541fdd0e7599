// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Advice for trainings on the CPU of a machine with few cores.
///
/// libtorch computes there with one OpenMP thread a core, and these spin while they wait for one
/// another. When another thread takes a core, one OpenMP thread loses a time slice and the others
/// spin through theirs: with few cores a training becomes slower by an order of magnitude. The
/// threads and their settings are libgomp's, which reads the settings when it is loaded.
public final class OpenMpAdvice {
  private static final Logger LOG = LoggerFactory.getLogger(OpenMpAdvice.class);
  private static final AtomicBoolean GIVEN = new AtomicBoolean();

  /// The most cores for which the advice is given: with more, losing one costs a smaller share.
  private static final int FEW_CORES = 4;

  /// If you have set one of these, you have decided what the threads do.
  private static final List<String> SETTINGS =
      List.of("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "GOMP_SPINCOUNT", "ai.djl.pytorch.num_threads");

  private OpenMpAdvice() {}

  /// Logs one line, once in the process, where it applies.
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
            "on "
                + cores
                + " cores, libtorch's OpenMP threads may slow a training down many times, because"
                + " they spin while they wait: set OMP_WAIT_POLICY=passive in the environment");
  }
}
