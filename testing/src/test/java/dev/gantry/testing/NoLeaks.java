// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Fails a test that leaves anything behind: slabs, registrations, descriptors of its files,
/// mappings of them.
///
/// Only files where tests keep theirs are looked at; the JVM and the libraries open others for
/// themselves when they like.
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

  /// Nothing, or what an earlier test left: that one has failed already.
  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    before = Holdings.now();
  }

  @Override
  public void afterEach(ExtensionContext context) throws IOException {
    assertThat(Holdings.now()).isEqualTo(before);
  }

  /// The resources that are held now, without those that are idle and kept for the next load:
  /// resources that a test did not give back stay.
  public static LiveResources.Snapshot held() {
    GantrySession.shared().freeIdle();
    return LiveResources.snapshot();
  }

  /// The tests' files that this process has open, one an open descriptor.
  public static List<String> openFiles() throws IOException {
    // Threads that look at what is available have a file open meanwhile, under this lock.
    synchronized (RegisteredPages.LOOKS) {
      return OwnProcess.descriptors().stream().filter(NoLeaks::isOurs).toList();
    }
  }

  /// The tests' files that this process has mapped, one a mapping.
  public static List<String> mappedFiles() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines
          .filter(line -> line.indexOf('/') >= 0)
          .map(line -> line.substring(line.indexOf('/')))
          // Libraries that were unpacked to be loaded stay for good, and so do the JVM's counters.
          .filter(file ->
              !file.matches(".*\\.so(\\.\\d+)*( \\(deleted\\))?") && !file.contains("/hsperfdata_"))
          .filter(NoLeaks::isOurs)
          .toList();
    }
  }

  /// The class path is the JVM's, wherever the project lies and also after its folder was deleted: class
  /// loaders close their jars when they are collected. The log is libcufile's.
  private static boolean isOurs(String file) {
    return PLACES.stream().anyMatch(place -> Path.of(file).startsWith(place))
        && !file.matches(".*\\.jar( \\(deleted\\))?")
        && !file.endsWith("/cufile.log");
  }
}
