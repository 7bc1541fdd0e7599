// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// A value in a pickle, as data. An object that Python would make by a call is an [Instance],
/// which names the function and its arguments. Values that can be keys of a dictionary are
/// comparable, so that hostile keys cannot make a dictionary slow.
sealed interface PickleValue {
  enum Constant implements PickleValue {
    NONE("None"),
    TRUE("True"),
    FALSE("False");

    private final String text;

    Constant(String text) {
      this.text = text;
    }

    /// Python's name of the constant.
    String text() {
      return text;
    }
  }

  /// An integer of 64 bits.
  record Int(long value) implements PickleValue, Comparable<Int> {
    @Override
    public int compareTo(Int other) {
      return Long.compare(value, other.value);
    }
  }

  record Real(double value) implements PickleValue, Comparable<Real> {
    @Override
    public int compareTo(Real other) {
      return Double.compare(value, other.value);
    }
  }

  record Text(String value) implements PickleValue, Comparable<Text> {
    @Override
    public int compareTo(Text other) {
      return value.compareTo(other.value);
    }

    // This method is written by hand because a new process takes long to generate a record's own
    // method.
    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Text(String text) && text.equals(value);
    }

    @Override
    public int hashCode() {
      return value.hashCode();
    }
  }

  /// A value that no tensor needs, such as bytes or an integer of more than 64 bits. Its contents
  /// are not kept.
  final class Opaque implements PickleValue {}

  /// A list, tuple or set.
  record Items(List<PickleValue> values) implements PickleValue {
    Items() {
      this(new ArrayList<>());
    }

    // Lists are compared by identity, since a list may contain itself.
    @Override
    public boolean equals(Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(this);
    }

    @Override
    public String toString() {
      return values.size() + " items";
    }
  }

  /// A dictionary, which may be an `OrderedDict`.
  record Dict(SequencedMap<PickleValue, PickleValue> entries) implements PickleValue {
    Dict() {
      this(new LinkedHashMap<>());
    }

    Optional<PickleValue> get(String key) {
      return Optional.ofNullable(entries.get(new Text(key)));
    }

    @Override
    public boolean equals(Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(this);
    }

    @Override
    public String toString() {
      return entries.size() + " entries";
    }
  }

  /// A function or class, by its name.
  ///
  /// @param path the full name, such as `torch._utils._rebuild_tensor_v2`
  record Global(String module, String name, String path) implements PickleValue {
    Global(String module, String name) {
      this(module, name, module + "." + name);
    }
  }

  /// The result that a call of a function or class would have; the call was not executed.
  final class Instance implements PickleValue {
    private final Global type;
    private final List<PickleValue> arguments;
    private final long offset;
    private @Nullable PickleValue state;

    /// @param offset the file offset of the call
    Instance(Global type, List<PickleValue> arguments, long offset) {
      this.type = type;
      this.arguments = arguments;
      this.offset = offset;
    }

    Global type() {
      return type;
    }

    List<PickleValue> arguments() {
      return arguments;
    }

    long offset() {
      return offset;
    }

    /// Returns the state, which Python would pass to `__setstate__`.
    Optional<PickleValue> state() {
      return Optional.ofNullable(state);
    }

    void build(PickleValue given) {
      state = given;
    }
  }

  /// Returns the integers of a tuple, a list or a `torch.Size`; null if the value is something
  /// else, or has an item that is no integer.
  static long @Nullable [] numbers(PickleValue value) {
    PickleValue items =
        value instanceof Instance size
                && size.type().path().equals(TorchTypes.SIZE)
                && !size.arguments().isEmpty()
            ? size.arguments().getFirst()
            : value;
    if (!(items instanceof Items(List<PickleValue> values))) {
      return null;
    }
    long[] numbers = new long[values.size()];
    for (int i = 0; i < numbers.length; i++) {
      if (!(values.get(i) instanceof Int(long number))) {
        return null;
      }
      numbers[i] = number;
    }
    return numbers;
  }

  /// A reference to an object outside the pickle, such as a storage.
  ///
  /// @param offset the file offset of the reference
  record Persistent(PickleValue id, long offset) implements PickleValue {}
}
