// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.checkpoints;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.s3.internal.S3Store;
import dev.gantry.testing.ChildJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/// A process that saves one checkpoint to a folder and to S3. It can be made to end at a chosen
/// call to S3.
final class UploadingChild implements AutoCloseable {
  static final Retention TWO = new Retention(2, 0, Optional.empty());

  /// The line that says that the checkpoint is on the disk, and is being uploaded.
  static final String SAVED = "saved";

  /// The line that says that the checkpoint is in S3.
  static final String DONE = "done";

  private final Process process;
  private final BufferedReader lines;

  private UploadingChild(Process process) {
    this.process = process;
    this.lines = process.inputReader();
  }

  /// @param lastCall the number of calls to S3 that change something; at the next such call, the
  ///     process ends as if by SIGKILL
  static UploadingChild start(Path root, Location remote, long step, int lastCall) {
    List<String> options = new ArrayList<>(List.of("-Xmx256m"));
    for (String property : System.getProperties().stringPropertyNames()) {
      if (property.startsWith("aws.")) {
        options.add("-D" + property + "=" + System.getProperty(property));
      }
    }
    try {
      return new UploadingChild(
          ChildJvm.command(options, UploadingChild.class, root, remote, step, lastCall)
              .redirectError(Redirect.DISCARD)
              .start());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the next line that the process prints; empty when the process has ended.
  Optional<String> line() {
    try {
      return Optional.ofNullable(lines.readLine());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Ends the process with SIGKILL.
  @Override
  public void close() {
    process.toHandle().destroyForcibly();
    process.onExit().join();
  }

  static void main(String[] arguments) {
    Path root = Path.of(arguments[0]);
    Location remote = Location.of(arguments[1]);
    long step = Long.parseLong(arguments[2]);
    EndingStore store = new EndingStore(new S3Store(), Integer.parseInt(arguments[3]));
    try (GantrySession session = GantrySession.open(FileCalls.ofPlatform(), List.of(store))) {
      try (CheckpointStore checkpoints =
          CheckpointStore.open(
              session,
              root,
              TWO,
              Checkpoints.FILE_BYTES,
              Optional.of(new CheckpointStore.Remote(remote, TWO)))) {
        var _ = checkpoints.save(Checkpoints.of(step), WriteOptions.defaults());
        System.out.println(SAVED);
        checkpoints.awaitUploads();
      }
      System.out.println(DONE);
    }
  }

  /// Counts the calls that change something in the store, and ends the process before one of
  /// them.
  private record EndingStore(WritableStore store, AtomicInteger left) implements WritableStore {
    EndingStore(WritableStore store, int calls) {
      this(store, new AtomicInteger(calls));
    }

    private void count() {
      if (left.getAndDecrement() == 0) {
        Runtime.getRuntime().halt(137);
      }
    }

    @Override
    public Set<String> schemes() {
      return store.schemes();
    }

    @Override
    public StoredFile open(Location file, CachePolicy policy) {
      return store.open(file, policy);
    }

    @Override
    public List<Entry> below(Location folder) {
      return store.below(folder);
    }

    @Override
    public void upload(Path file, Location target) {
      count();
      store.upload(file, target);
    }

    @Override
    public void remove(Location file) {
      count();
      store.remove(file);
    }

    @Override
    public void endUploads(Location folder, Predicate<String> names) {
      count();
      store.endUploads(folder, names);
    }

    @Override
    public void close() {
      try {
        store.close();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
