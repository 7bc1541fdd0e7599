// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.ProgressListener;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// A bar on standard error, where that is a terminal; else nothing.
public final class Progress implements ProgressListener, AutoCloseable {
  private static final Path STANDARD_ERROR = Path.of("/proc/self/fd/2");

  private final @Nullable ProgressBar bar;

  public Progress(String task, long totalBytes) {
    bar = isTerminal() ? bar(task, totalBytes) : null;
  }

  private static ProgressBar bar(String task, long totalBytes) {
    return new ProgressBarBuilder()
        .setTaskName(task)
        .setInitialMax(totalBytes)
        .setUnit("MB", 1_000_000)
        .setStyle(ProgressBarStyle.UNICODE_BLOCK)
        .setUpdateIntervalMillis(100)
        .showSpeed()
        .setConsumer(new ConsoleProgressBarConsumer(System.err))
        .build();
  }

  /// The console that Java knows is about standard input and output, and is null in a pipe.
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

  @Override
  public void onProgress(long done, long total) {
    if (bar != null) {
      bar.maxHint(total);
      bar.stepTo(done);
    }
  }

  @Override
  public void close() {
    if (bar != null) {
      bar.close();
    }
  }
}
