// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A request to the server of a remote file. Attempts follow one another until one of them ends the request, or it is
/// cancelled; no thread waits meanwhile.
///
/// The request ends once, on whichever thread that happens first, and nothing of its attempts touches memory after
/// that. Thread-safe.
public abstract class RemoteRequest {
  /// One attempt.
  public interface Attempt {
    /// Ends the attempt. It touches no memory from the return of this call on; what it brings later counts for nothing.
    void stop();
  }

  private final String operation;
  private final String subject;
  private final Cancellation cancellation;
  private Runnable forget = () -> {};
  private @Nullable Attempt running;
  private int attempts;
  private boolean ended;

  /// @param operation what is asked for, such as `GET`, for messages
  /// @param subject of which file, with offset and length where they matter
  protected RemoteRequest(String operation, String subject, Cancellation cancellation) {
    this.operation = operation;
    this.subject = subject;
    this.cancellation = cancellation;
  }

  /// Makes an attempt, which calls [#begins] before all else. On any thread.
  protected abstract void attempt();

  /// The request was cancelled, or an attempt failed that no other follows. Called once, instead of [#completed].
  protected abstract void failed(Throwable reason);

  /// The request is done.
  protected abstract void completed();

  /// Call it once.
  public final void start() {
    Runnable registered = cancellation.whenCancelled(this::cancel);
    synchronized (this) {
      forget = registered;
      if (ended) {
        return;
      }
    }
    attempt();
  }

  /// Whether the request goes on, with this attempt.
  protected final synchronized boolean begins(Attempt attempt) {
    if (ended) {
      return false;
    }
    attempts++;
    running = attempt;
    return true;
  }

  /// How many attempts have begun.
  protected final synchronized int attempts() {
    return attempts;
  }

  /// Has another attempt follow this one after a pause.
  protected final void retry(Attempt attempt, Duration pause) {
    if (stops(attempt, false)) {
      CompletableFuture.delayedExecutor(pause.toMillis(), TimeUnit.MILLISECONDS)
          .execute(this::attempt);
    }
  }

  /// Ends the request by this attempt, unless it has ended or another attempt is running.
  ///
  /// @param reason why the attempt failed; null if it is what was asked for
  /// @return whether it ended
  protected final boolean end(Attempt attempt, @Nullable Throwable reason) {
    if (!stops(attempt, true)) {
      return false;
    }
    if (reason == null) {
      completed();
    } else {
      failed(reason);
    }
    return true;
  }

  private boolean stops(Attempt attempt, boolean forGood) {
    Runnable forgotten;
    synchronized (this) {
      if (ended || !attempt.equals(running)) {
        return false;
      }
      running = null;
      ended = forGood;
      forgotten = forget;
    }
    attempt.stop();
    if (forGood) {
      forgotten.run();
    }
    return true;
  }

  private void cancel() {
    Attempt cancelled;
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
      cancelled = running;
    }
    if (cancelled != null) {
      cancelled.stop();
    }
    failed(failure(new Failure.Cancelled(), null));
  }

  /// This request's failure.
  protected final TransferException failure(Failure failure, @Nullable Throwable cause) {
    return new TransferException(operation, subject, failure, cause);
  }

  protected final String operation() {
    return operation;
  }

  protected final String subject() {
    return subject;
  }

  /// Names a part of a file, for messages.
  ///
  /// @param length in bytes
  public static String subject(Object file, long offset, long length) {
    return file + " offset " + offset + " length " + length;
  }
}
