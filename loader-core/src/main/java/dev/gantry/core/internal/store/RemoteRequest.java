// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A request to the server of a remote file. It makes one attempt after another until one of them ends it, or it is
/// cancelled. No thread waits meanwhile.
///
/// The request ends once, on whichever thread that happens first. None of its attempts touches memory afterwards.
/// Thread-safe.
public abstract class RemoteRequest {
  /// One attempt at the request.
  public interface Attempt {
    /// Ends the attempt. When this returns, the attempt touches no memory any more, and its results are ignored.
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
  /// @param subject the file, with offset and length where they matter, for messages
  protected RemoteRequest(String operation, String subject, Cancellation cancellation) {
    this.operation = operation;
    this.subject = subject;
    this.cancellation = cancellation;
  }

  /// Makes an attempt, which calls [#begins] first. Called on any thread.
  protected abstract void attempt();

  /// Called once, instead of [#completed], when the request was cancelled or its last attempt failed.
  protected abstract void failed(Throwable reason);

  /// Called once, instead of [#failed], when the request is done.
  protected abstract void completed();

  /// Starts the request. Callers call this once.
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

  /// Notes that an attempt begins.
  ///
  /// @return whether the request goes on; if not, the attempt must end
  protected final synchronized boolean begins(Attempt attempt) {
    if (ended) {
      return false;
    }
    attempts++;
    running = attempt;
    return true;
  }

  /// The number of attempts that have begun.
  protected final synchronized int attempts() {
    return attempts;
  }

  /// Stops an attempt, and makes another one after a pause.
  protected final void retry(Attempt attempt, Duration pause) {
    if (stops(attempt, false)) {
      CompletableFuture.delayedExecutor(pause.toMillis(), TimeUnit.MILLISECONDS)
          .execute(this::attempt);
    }
  }

  /// Ends the request with this attempt's result, unless the request has ended or another attempt is running.
  ///
  /// @param reason why the attempt failed; null if it succeeded
  /// @return whether this call ended the request
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

  /// Makes the exception for a failure of this request.
  protected final TransferException failure(Failure failure, @Nullable Throwable cause) {
    return new TransferException(operation, subject, failure, cause);
  }

  protected final String operation() {
    return operation;
  }

  protected final String subject() {
    return subject;
  }

  /// Names a range of a file, for messages.
  ///
  /// @param length in bytes
  public static String subject(Object file, long offset, long length) {
    return file + " offset " + offset + " length " + length;
  }
}
