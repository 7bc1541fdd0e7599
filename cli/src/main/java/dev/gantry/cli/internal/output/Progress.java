// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.Location;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// Draws a progress bar on standard error if standard error is a terminal. With or without a bar,
/// each update ends the command if its thread was interrupted.
public final class Progress implements ProgressListener, AutoCloseable {
  private static final Path STANDARD_ERROR = Path.of("/proc/self/fd/2");

  private static final long UNKNOWN = -1;

  private final String task;
  private final long total;
  private final @Nullable ProgressBar bar;
  private @Nullable Location file;
  private long before;
  private long offset;

  public Progress(String task, long totalBytes) {
    this(task, totalBytes, builder -> builder.setUnit("MB", 1_000_000).showSpeed());
  }

  private Progress(String task, long total, UnaryOperator<ProgressBarBuilder> unit) {
    this.task = task;
    this.total = total;
    bar = isTerminal() ? unit.apply(bar(task, total)).build() : null;
  }

  /// Makes a bar that counts steps of any kind.
  public static Progress ofSteps(String task, long steps) {
    return new Progress(task, steps, UnaryOperator.identity());
  }

  /// Makes a bar that counts the bytes of files that are read record by record, one after the
  /// other. The total is unknown if a file is remote.
  public static Progress ofRecords(String task, List<Location> files) {
    boolean known = files.stream().allMatch(Location.Local.class::isInstance);
    long total =
        known ? files.stream().mapToLong(each -> each.path().toFile().length()).sum() : UNKNOWN;
    return new Progress(task, total);
  }

  private static ProgressBarBuilder bar(String task, long total) {
    return new ProgressBarBuilder()
        .setTaskName(task)
        .setInitialMax(total)
        .setStyle(ProgressBarStyle.UNICODE_BLOCK)
        .setUpdateIntervalMillis(100)
        .setConsumer(new ConsoleProgressBarConsumer(System.err));
  }

  /// Whether standard error is a terminal. `System.console()` does not tell, because it is about
  /// standard input and output.
  private static boolean isTerminal() {
    try {
      String file = Files.readSymbolicLink(STANDARD_ERROR).toString();
      return file.startsWith("/dev/pts/")
          || file.startsWith("/dev/tty")
          || file.equals("/dev/console");
    } catch (IOException _) {
      return false;
    }
  }

  /// @throws TransferException if the thread is interrupted, which a loop that never waits would
  ///     not notice
  @Override
  public void onProgress(long done, long total) {
    if (Thread.currentThread().isInterrupted()) {
      throw WorkerThreads.interrupted(task, "the remaining bytes");
    }
    if (bar != null) {
      bar.maxHint(total);
      bar.stepTo(done);
    }
  }

  /// Moves the bar to a reader's offset. The total is unknown if the file is compressed, because
  /// the offset counts decompressed bytes.
  public void at(TfRecordReader reader) {
    at(reader.location(), reader.offset(), reader.compression() != Compression.NONE);
  }

  /// Moves the bar to an offset in one of the files. In a compressed file, the offset counts
  /// decompressed bytes.
  public void at(Location current, long position, boolean isCompressed) {
    if (!current.equals(file)) {
      before += offset;
      file = current;
    }
    offset = position;
    onProgress(before + offset, isCompressed ? UNKNOWN : total);
  }

  /// Shows a message beside the bar.
  public void say(String what) {
    if (bar != null) {
      bar.setExtraMessage(what);
    }
  }

  @Override
  public void close() {
    if (bar != null) {
      bar.close();
    }
  }
}
