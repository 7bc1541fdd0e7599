// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Formula;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A stored tensor that a quantised tensor's formula loads elements of. Immutable.
///
/// @param tensor a plain tensor or a part of one, of at most three axes
/// @param axes how the formula indexes each of the tensor's axes
public record QuantisedInput(StoredTensor tensor, List<Axis> axes) {
  /// Says how a formula indexes an axis of the input: by the formula's index along the axis `of`,
  /// times `times`, divided by `by`. Because of this rule, a part of the quantised tensor needs
  /// only a part of the input.
  ///
  /// @param of the formula's axis; null if any part of the quantised tensor needs the input's
  ///     whole axis
  /// @param from the index in the whole input at which this input begins
  public record Axis(Formula.@Nullable Axis of, long times, long by, long from) {
    /// An axis of which any part of the quantised tensor needs the whole.
    public static final Axis WHOLE = new Axis(null, 1, 1, 0);

    public static Axis of(Formula.Axis of, long by) {
      return new Axis(of, 1, by, 0);
    }

    public static Axis of(Formula.Axis of) {
      return of(of, 1);
    }

    /// Returns the axis of an input whose elements are words that hold several packed numbers.
    ///
    /// @param wordBits how many bits an element of the axis has
    public static Axis packed(Formula.Axis of, int bits, int wordBits) {
      return new Axis(of, bits, wordBits, 0);
    }
  }

  public QuantisedInput {
    axes = List.copyOf(axes);
    if (axes.size() != tensor.shape().rank()) {
      throw new MisuseException(
          "tensor '"
              + tensor.name()
              + "' of shape "
              + tensor.shape()
              + " has not "
              + axes.size()
              + " axes");
    }
  }

  public static QuantisedInput of(StoredTensor tensor, Axis... axes) {
    return new QuantisedInput(tensor, List.of(axes));
  }

  /// Returns the part of this input that some indexes of the quantised tensor need.
  ///
  /// @param spans the ranges of indexes along one of the quantised tensor's axes, in the whole
  ///     tensor
  QuantisedInput slice(Formula.Axis of, List<StoredTensor.Span> spans) {
    QuantisedInput part = this;
    for (int i = 0; i < axes.size(); i++) {
      Axis axis = axes.get(i);
      if (axis.of() == of) {
        part = part.slice(i, axis, spans);
      }
    }
    return part;
  }

  private QuantisedInput slice(int number, Axis axis, List<StoredTensor.Span> spans) {
    List<StoredTensor.Span> wanted = new ArrayList<>();
    for (StoredTensor.Span span : spans) {
      long from = Math.multiplyExact(span.from(), axis.times());
      long to = Math.multiplyExact(span.to(), axis.times());
      if (spans.size() > 1 && (from % axis.by() != 0 || to % axis.by() != 0)) {
        throw new MisuseException(
            "a part of the fused tensor would divide an element of '" + tensor.name() + "'");
      }
      long first = from / axis.by() - axis.from();
      long end = Math.ceilDiv(to, axis.by()) - axis.from();
      wanted.add(new StoredTensor.Span(first, Math.min(end, tensor.shape().dimension(number))));
    }
    List<Axis> cut = new ArrayList<>(axes);
    // The parts of a fused tensor become one input, whose indexes begin at 0.
    long from = spans.size() > 1 ? 0 : axis.from() + wanted.getFirst().from();
    cut.set(number, new Axis(axis.of(), axis.times(), axis.by(), from));
    return new QuantisedInput(tensor.slice(number, wanted), cut);
  }
}
