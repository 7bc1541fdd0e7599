// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.torch.PickleValue.Constant;
import dev.gantry.formats.internal.torch.PickleValue.Dict;
import dev.gantry.formats.internal.torch.PickleValue.Global;
import dev.gantry.formats.internal.torch.PickleValue.Instance;
import dev.gantry.formats.internal.torch.PickleValue.Int;
import dev.gantry.formats.internal.torch.PickleValue.Items;
import dev.gantry.formats.internal.torch.PickleValue.Persistent;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Makes tensors of a pickle's values. The call by which PyTorch would rebuild a tensor names the
/// tensor's storage and its elements there.
final class TorchTensors {
  /// The most dimensions of a tensor, as in PyTorch.
  static final int MAX_RANK = 64;

  /// The deepest nesting of calls, such as a parameter's call around its tensor's call.
  private static final int MAX_CALLS = 8;

  private static final Constant NONE = Constant.NONE;

  /// Finds storages by their names in the pickle.
  interface Storages {
    /// @param key the storage's name
    /// @param reference the pickle's reference to the storage
    Optional<TorchStorage> find(String key, Persistent reference);
  }

  /// A pickle's reference to a storage.
  ///
  /// @param type the name of the dtype of its elements
  /// @param elements how many elements the storage has
  /// @param from the index of the first element, for the views of storages that PyTorch wrote
  ///     before version 0.4
  record Reference(String key, String type, long elements, long from) {}

  private final Location file;
  private final Storages storages;

  TorchTensors(Location file, Storages storages) {
    this.file = file;
    this.storages = storages;
  }

  /// Returns the tensor that a call makes.
  StoredTensor tensor(String name, Instance call) {
    return tensor(name, call, call.type().path(), call.arguments(), 0);
  }

  private StoredTensor tensor(
      String name, Instance call, String path, List<PickleValue> arguments, int depth) {
    if (depth == MAX_CALLS) {
      throw invalid(call, "calls lie deeper in one another than " + MAX_CALLS);
    }
    String function =
        path.startsWith(TorchTypes.UTILS) ? path.substring(TorchTypes.UTILS.length()) : path;
    return switch (function) {
      case "_rebuild_tensor" -> view(name, call, arguments, NONE, NONE);
      case "_rebuild_tensor_v2" -> view(name, call, arguments, NONE, optional(arguments, 6));
      case "_rebuild_tensor_v3" ->
          view(name, call, arguments, argument(call, arguments, 6), optional(arguments, 7));
      case "_rebuild_parameter",
          "_rebuild_parameter_with_state",
          "_rebuild_device_tensor_from_cpu_tensor",
          "torch.nn.parameter.Parameter",
          "torch.nn.parameter.Buffer" -> {
        if (argument(call, arguments, 0) instanceof Instance inner) {
          yield tensor(name, inner, inner.type().path(), inner.arguments(), depth + 1);
        }
        throw invalid(call, "a parameter has no tensor");
      }
      case TorchTypes.FROM_TYPE -> {
        if (argument(call, arguments, 0) instanceof Global inner
            && argument(call, arguments, 2) instanceof Items(List<PickleValue> given)) {
          yield tensor(name, call, inner.path(), given, depth + 1);
        }
        throw invalid(call, "the tensor of a subclass lacks its function or its arguments");
      }
      default ->
          throw malformed(
              call.offset(),
              "unsupported-tensor",
              "tensor '%s' is made by %s: only dense tensors that are not quantised are read"
                  .formatted(name, path));
    };
  }

  private StoredTensor view(
      String name,
      Instance call,
      List<PickleValue> arguments,
      PickleValue dtype,
      PickleValue metadata) {
    requireResolved(name, call, metadata);
    if (!(argument(call, arguments, 0) instanceof Persistent persistent)) {
      throw invalid(call, "a tensor has no storage");
    }
    Reference reference = reference(persistent);
    String type =
        dtype instanceof Global global && global.module().equals("torch")
            ? global.name()
            : reference.type();
    DType known = requireType(name, call.offset(), type);
    TorchStorage storage = storage(persistent, reference);
    long[] sizes = numbers(call, argument(call, arguments, 2));
    long[] strides = numbers(call, argument(call, arguments, 3));
    if (!(argument(call, arguments, 1) instanceof Int(long offset))
        || offset < 0
        || sizes.length != strides.length
        || sizes.length > MAX_RANK) {
      throw invalid(call, "the offset, sizes and strides of tensor '" + name + "' do not fit");
    }
    List<Long> own = new ArrayList<>();
    for (int axis = 0; axis < sizes.length; axis++) {
      if (sizes[axis] < 0 || strides[axis] < 0) {
        throw invalid(call, "tensor '" + name + "' has a negative size or stride");
      }
      own.add(sizes[axis] > 1 ? strides[axis] : 0);
    }
    TensorShape shape = TensorShape.of(sizes);
    Encoding.Strided strided = new Encoding.Strided(own, storage.order());
    long elementBytes = known.bits() / Byte.SIZE;
    try {
      long from = Math.multiplyExact(Math.addExact(offset, reference.from()), elementBytes);
      long span = Math.multiplyExact(strided.span(shape), elementBytes);
      if (StoredTensor.bytes(known, shape).isPresent()
          && (span == 0 || span <= storage.bytes() - from)) {
        return storage.tensor(name, known, shape, span == 0 ? 0 : from, strided);
      }
    } catch (ArithmeticException _) {
      // The value is refused below.
    }
    throw malformed(
        call.offset(),
        "tensor-past-storage",
        "tensor '%s', %s %s from element %s on, reaches beyond its storage of %s bytes"
            .formatted(name, known, shape, offset, storage.bytes()));
  }

  private void requireResolved(String name, Instance call, PickleValue metadata) {
    if (metadata instanceof Dict(var notes)
        && (notes.get(new Text("conj")) == Constant.TRUE
            || notes.get(new Text("neg")) == Constant.TRUE)) {
      throw malformed(
          call.offset(),
          "unsupported-tensor",
          "tensor '%s' is a lazy conjugate or negation; resolve_conj() and resolve_neg() make it"
                  .formatted(name)
              + " plain before it is saved");
    }
  }

  private DType requireType(String name, long offset, String type) {
    return TorchTypes.dtype(type)
        .orElseThrow(() ->
            malformed(
                offset,
                "unsupported-dtype",
                "tensor '" + name + "' has dtype torch." + type + ", which is not read"));
  }

  private TorchStorage storage(Persistent persistent, Reference reference) {
    TorchStorage found =
        storages
            .find(reference.key(), persistent)
            .orElseThrow(() ->
                malformed(
                    persistent.offset(),
                    "missing-storage",
                    "storage '" + reference.key() + "' is not in the file"));
    long elementBytes = requireType("", persistent.offset(), reference.type()).bits() / Byte.SIZE;
    if (reference.elements() > found.bytes() / elementBytes) {
      throw malformed(
          persistent.offset(),
          "storage-too-short",
          "storage '%s' should have %s elements of torch.%s, and has %s bytes"
              .formatted(reference.key(), reference.elements(), reference.type(), found.bytes()));
    }
    return found;
  }

  /// Returns the reference to a storage that a persistent id holds.
  Reference reference(Persistent persistent) {
    if (persistent.id() instanceof Items(List<PickleValue> id)
        && id.size() >= 5
        && id.getFirst() instanceof Text(String kind)
        && kind.equals("storage")
        && id.get(4) instanceof Int(long elements)
        && elements >= 0) {
      Optional<String> type = TorchTypes.storageType(id.get(1));
      String key = StateDict.note(id.get(2));
      if (type.isPresent() && key != null) {
        return new Reference(key, type.get(), elements, viewed(id, persistent));
      }
    }
    throw malformed(
        persistent.offset(),
        "invalid-storage",
        "the pickle refers to something that is not a storage");
  }

  private long viewed(List<PickleValue> id, Persistent persistent) {
    if (id.size() < 6 || id.get(5) == Constant.NONE) {
      return 0;
    }
    if (id.get(5) instanceof Items(List<PickleValue> view)
        && view.size() == 3
        && view.get(1) instanceof Int(long from)
        && from >= 0) {
      return from;
    }
    throw malformed(persistent.offset(), "invalid-storage", "a view of a storage has no offset");
  }

  /// The dtype of a storage's elements.
  DType storageType(Persistent persistent) {
    return requireType("", persistent.offset(), reference(persistent).type());
  }

  private long[] numbers(Instance call, PickleValue value) {
    long[] numbers = PickleValue.numbers(value);
    if (numbers == null) {
      throw invalid(call, "sizes or strides are no tuple of integers");
    }
    return numbers;
  }

  private PickleValue argument(Instance call, List<PickleValue> arguments, int index) {
    if (index < arguments.size()) {
      return arguments.get(index);
    }
    throw invalid(call, call.type().path() + " lacks an argument");
  }

  private static PickleValue optional(List<PickleValue> arguments, int index) {
    return index < arguments.size() ? arguments.get(index) : NONE;
  }

  private MalformedFileException invalid(Instance call, String detail) {
    return malformed(call.offset(), "invalid-tensor", detail);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(file, offset, kind, detail);
  }
}
