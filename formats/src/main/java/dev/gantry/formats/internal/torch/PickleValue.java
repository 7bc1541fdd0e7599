// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// A value in a pickle, as data: an object that Python would call a function for is an [Instance], which
/// tells the function and its arguments. Values that can be equal keys of a dictionary can be compared, so
/// that no choice of keys makes a dictionary slow.
sealed interface PickleValue {
  enum Constant implements PickleValue {
    NONE("None"),
    TRUE("True"),
    FALSE("False");

    private final String text;

    Constant(String text) {
      this.text = text;
    }

    /// Python's name of it.
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

    // The methods that a record has by itself take a new process long to make.
    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Text(String text) && text.equals(value);
    }

    @Override
    public int hashCode() {
      return value.hashCode();
    }
  }

  /// A value that no tensor needs, such as bytes, or an integer of more than 64 bits; nothing of it is kept.
  final class Opaque implements PickleValue {}

  /// A list, tuple or set.
  record Items(List<PickleValue> values) implements PickleValue {
    Items() {
      this(new ArrayList<>());
    }

    // A list may hold itself.
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

  /// A dictionary, also an `OrderedDict`.
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

  /// A function or class by its name.
  ///
  /// @param path the full name, such as `torch._utils._rebuild_tensor_v2`
  record Global(String module, String name, String path) implements PickleValue {
    Global(String module, String name) {
      this(module, name, module + "." + name);
    }
  }

  /// The result of a function or class, which was not called.
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

    /// Returns the state, which `__setstate__` would get.
    Optional<PickleValue> state() {
      return Optional.ofNullable(state);
    }

    void build(PickleValue given) {
      state = given;
    }
  }

  /// The integers of a tuple, a list or a `torch.Size`; null if the value is none of integers.
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

  /// An object that lies outside of the pickle, such as a storage.
  ///
  /// @param offset the file offset of the reference
  record Persistent(PickleValue id, long offset) implements PickleValue {}
}
