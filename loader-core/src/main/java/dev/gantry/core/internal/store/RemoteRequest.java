// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// A request of any kind to a server. It makes one attempt after another until an attempt
/// succeeds, an attempt meets a lasting fault, the limits are reached, or the request is
/// cancelled. If an attempt takes too long, [#hedge] makes a second attempt beside it. The thread
/// that starts the request does not wait.
///
/// The request ends once, on any thread. After its end, no attempt writes to memory. Thread-safe.
public abstract class RemoteRequest {
  /// One attempt at the request.
  public interface Attempt {
    /// Ends the attempt. When this returns, the attempt touches no memory any more, and its results are ignored.
    void stop();
  }

  private final String operation;
  private final String subject;
  private final Cancellation cancellation;
  private final RetryLimits limits;
  private final BooleanSupplier patience;
  private final List<Attempt> running = new ArrayList<>(2);
  private Runnable forget = () -> {};
  private int attempts;
  private int stopping;

  /// How many attempts follow after a pause.
  private int following;

  private boolean ended;

  /// @param operation the operation, such as `GET`, for messages
  /// @param subject the file, with offset and length if they matter, for messages
  /// @param patience asked before each further attempt whether it may be made
  protected RemoteRequest(
      String operation,
      String subject,
      Cancellation cancellation,
      RetryLimits limits,
      BooleanSupplier patience) {
    this.operation = operation;
    this.subject = subject;
    this.cancellation = cancellation;
    this.limits = limits;
    this.patience = patience;
  }

  /// Makes an attempt, which calls [#begins] first, and [#succeed], [#fail] or [#end] at its end.
  /// Called on any thread. If this throws, the request fails with that exception.
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
    begin();
  }

  /// Makes an attempt. If the attempt cannot begin, the request ends here, since no other thread
  /// would end it.
  private void begin() {
    try {
      attempt();
    } catch (RuntimeException | Error e) {
      finish(null, e);
    }
  }

  /// Makes a second attempt beside an attempt that takes too long. The first of the two to succeed
  /// ends the request. Both write to the same memory, which is safe because both deliver the same
  /// bytes of one version of the file. If the second cannot begin, the first goes on alone.
  public final void hedge() {
    Attempt first;
    synchronized (this) {
      if (ended || running.size() != 1 || attempts >= limits.attempts()) {
        return;
      }
      first = running.getFirst();
    }
    try {
      attempt();
    } catch (RuntimeException | Error e) {
      withdraw(first, e);
    }
  }

  /// Withdraws the attempt that could not begin beside `first`. Ends the request if `first` has
  /// failed meanwhile, and so left the request to the other attempt.
  private void withdraw(Attempt first, Throwable reason) {
    Attempt second;
    synchronized (this) {
      second = running.isEmpty() ? first : running.getLast();
    }
    if (!second.equals(first) && !drop(second, 2, 0)) {
      finish(null, reason);
    }
  }

  /// Notes that an attempt begins.
  ///
  /// @return whether the request is still running; if not, the attempt must end
  protected final synchronized boolean begins(Attempt attempt) {
    if (ended) {
      return false;
    }
    attempts++;
    running.add(attempt);
    return true;
  }

  /// Ends the request, since an attempt succeeded.
  protected final void succeed(Attempt attempt) {
    finish(attempt, null);
  }

  /// Ends the request, since an attempt met a defect that every attempt would meet again.
  protected final void end(Attempt attempt, Throwable defect) {
    finish(attempt, defect);
  }

  /// Ends an attempt that failed. Another attempt follows after a pause if the fault may pass, the
  /// limits and the load's patience allow it, and no hedged attempt is running.
  protected final void fail(Attempt attempt, RemoteFault fault) {
    int made;
    synchronized (this) {
      if (ended || !running.contains(attempt)) {
        return;
      }
      made = attempts;
    }
    if (fault.isPassing() && drop(attempt, 2, 0)) {
      return;
    }
    Optional<Duration> pause = limits.pauseAfter(made, fault);
    if (pause.isPresent() && patience.getAsBoolean()) {
      retry(attempt, pause.get().toMillis());
    } else {
      finish(attempt, exception(fault, made));
    }
  }

  /// Stops an attempt, and makes another attempt after a pause.
  ///
  /// @param millis the pause
  protected final void retry(Attempt attempt, long millis) {
    if (!drop(attempt, 1, 1)) {
      return;
    }
    try {
      CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS).execute(this::follow);
    } catch (OutOfMemoryError e) {
      finish(null, e);
    }
  }

  private void follow() {
    synchronized (this) {
      following--;
    }
    begin();
  }

  /// Stops an attempt that asked in vain, and leaves the request to the other attempts. If there is
  /// none, another attempt is made at once.
  protected final void leave(Attempt attempt) {
    if (!drop(attempt, 2, 0)) {
      retry(attempt, 0);
    }
  }

  /// Stops an attempt without ending the request. The request cannot end before the attempt has
  /// stopped writing, because its memory may be reused after the end.
  ///
  /// @param least how many attempts must be running or follow after a pause, `attempt` included
  /// @param next how many attempts follow in place of this one
  /// @return false if there are fewer, or `attempt` was stopped already
  private boolean drop(Attempt attempt, int least, int next) {
    synchronized (this) {
      if (ended || running.size() + following < least || !running.remove(attempt)) {
        return false;
      }
      following += next;
      stopping++;
    }
    try {
      attempt.stop();
    } finally {
      synchronized (this) {
        stopping--;
        notifyAll();
      }
    }
    return true;
  }

  /// Ends the request, and waits until attempts that are being stopped have stopped writing. The
  /// caller holds the lock.
  ///
  /// @return the attempts that the caller must still stop
  private List<Attempt> over() {
    // The list is made first, because this may throw if the heap is full.
    List<Attempt> left = List.copyOf(running);
    ended = true;
    boolean interrupted = false;
    while (stopping > 0) {
      try {
        wait();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    running.clear();
    return left;
  }

  private TransferException exception(RemoteFault fault, int made) {
    StringBuilder reason = new StringBuilder(fault.reason());
    if (fault.waiting().compareTo(RetryLimits.LONGEST_WAIT) > 0) {
      reason.append(", the server asks to wait ").append(fault.waiting().toSeconds()).append(" s");
    }
    if (made > 1) {
      reason.append(", after ").append(made).append(" attempts");
    } else if (fault.isPassing() && made < limits.attempts()) {
      reason.append(", and the load has failed too often to go on");
    }
    return failure(new Failure.Remote(fault.status(), reason.toString()), fault.getCause());
  }

  /// Ends the request, stops all of its attempts, and calls [#completed] or [#failed], even if a
  /// step fails. Does nothing if the request has ended.
  ///
  /// @param attempt the attempt that ends the request, which must be running; null if the reason
  ///     is not an attempt's
  /// @param reason null if the request has succeeded
  private void finish(@Nullable Attempt attempt, @Nullable Throwable reason) {
    Runnable forgotten;
    List<Attempt> stopped;
    synchronized (this) {
      if (ended || (attempt != null && !running.contains(attempt))) {
        return;
      }
      forgotten = forget;
      stopped = over();
    }
    Throwable told = reason;
    try {
      for (Attempt each : stopped) {
        each.stop();
      }
      forgotten.run();
    } catch (RuntimeException | Error e) {
      told = reason == null ? e : reason;
    }
    if (told == null) {
      completed();
    } else {
      failed(told);
    }
  }

  private void cancel() {
    finish(null, failure(new Failure.Cancelled(), null));
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

  protected final RetryLimits limits() {
    return limits;
  }

  /// Names a range of a file, for messages.
  ///
  /// @param length in bytes
  public static String subject(Object file, long offset, long length) {
    return file + " offset " + offset + " length " + length;
  }
}
