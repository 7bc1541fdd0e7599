// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.threads.Preparations;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Fails a test that leaves slabs, registrations, descriptors of its files, or mappings of its
/// files.
///
/// Only files in the tests' folders count, because the JVM and the libraries open other files at
/// any time.
public final class NoLeaks implements BeforeEachCallback, AfterEachCallback {
  private static final List<Path> PLACES =
      List.of(Path.of(System.getProperty("java.io.tmpdir")), Path.of("/dev/shm"));

  private record Holdings(
      LiveResources.Snapshot resources, List<String> open, List<String> mapped) {
    static Holdings now() throws IOException {
      return new Holdings(held(), openFiles(), mappedFiles());
    }
  }

  private static final Holdings NOTHING =
      new Holdings(LiveResources.Snapshot.NOTHING, List.of(), List.of());

  private Holdings before = NOTHING;

  /// Records the resources that are held before the test, because an earlier test may have left
  /// some and has failed for that already.
  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    before = Holdings.now();
  }

  @Override
  public void afterEach(ExtensionContext context) throws IOException {
    assertThat(Holdings.now()).isEqualTo(before);
  }

  /// Returns the held resources without idle ones that are kept for the next load. Resources that
  /// a test has not released still count.
  public static LiveResources.Snapshot held() {
    // The rehearsal of a load runs when DJL starts.
    Preparations.await();
    GantrySession.shared().freeIdle();
    return LiveResources.snapshot();
  }

  /// Returns the tests' files that this process has open, one entry for each descriptor.
  public static List<String> openFiles() throws IOException {
    // Threads that read the registered bytes of all processes hold this lock while they have the
    // file open.
    synchronized (RegisteredPages.LOOKS) {
      return OwnProcess.descriptors().stream().filter(NoLeaks::isOurs).toList();
    }
  }

  /// Returns the tests' files that this process has mapped, one entry for each mapping.
  public static List<String> mappedFiles() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines
          .filter(line -> line.indexOf('/') >= 0)
          .map(line -> line.substring(line.indexOf('/')))
          // Unpacked native libraries stay mapped until the process ends, and so do the JVM's
          // counters.
          .filter(file ->
              !file.matches(".*\\.so(\\.\\d+)*( \\(deleted\\))?") && !file.contains("/hsperfdata_"))
          .filter(NoLeaks::isOurs)
          .toList();
    }
  }

  /// Returns whether a file counts. Jars of the class path do not, wherever the project lies, and
  /// also after the folder was deleted, because class loaders close their jars only when they are
  /// collected. Nor does libcufile's log, nor the folder of a child JVM, which another thread may be
  /// deleting.
  private static boolean isOurs(String file) {
    return PLACES.stream().anyMatch(place -> Path.of(file).startsWith(place))
        && !file.matches(".*\\.jar( \\(deleted\\))?")
        && !file.endsWith("/cufile.log")
        && !file.matches(".*/jvm\\d+");
  }
}
