// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.live;

import java.util.Iterator;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Supplier;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/// The results that a block computes step by step after the call that began them has returned.
/// Each step runs within a frame, such as a lock.
///
/// @param <T> the result of one step
public record Steps<T>(Iterator<T> steps, Steps.Frame frame) implements Iterator<T> {
  /// Surrounds each step, for example with a lock.
  public interface Frame {
    <R> R within(Supplier<R> step);
  }

  /// Wraps `result` so that each step runs within `frame`, if it is an [Iterator] or a [Stream],
  /// which computes later. Any other result is returned as it is.
  public static @Nullable Object each(@Nullable Object result, Frame frame) {
    return switch (result) {
      case Iterator<?> steps -> new Steps<>(steps, frame);
      case Stream<?> stream -> stream(stream, frame);
      case null, default -> result;
    };
  }

  private static <T> Stream<T> stream(Stream<T> stream, Frame frame) {
    Iterator<T> steps = new Steps<>(stream.iterator(), frame);
    return StreamSupport.stream(
            Spliterators.spliteratorUnknownSize(steps, Spliterator.ORDERED), false)
        .onClose(stream::close);
  }

  @Override
  public boolean hasNext() {
    return frame.within(steps::hasNext);
  }

  @Override
  public T next() {
    return frame.within(steps::next);
  }
}
