// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.torch.PickleValue.Constant;
import dev.gantry.formats.internal.torch.PickleValue.Dict;
import dev.gantry.formats.internal.torch.PickleValue.Global;
import dev.gantry.formats.internal.torch.PickleValue.Instance;
import dev.gantry.formats.internal.torch.PickleValue.Int;
import dev.gantry.formats.internal.torch.PickleValue.Items;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Reads the `.metadata` of a folder of `torch.distributed.checkpoint`.
final class DcpMetadata {
  private static final String MODULE = "torch.distributed.checkpoint.";

  /// A tensor, and the chunks that it consists of.
  record Tensor(String name, DType dtype, TensorShape shape, List<Chunk> chunks) {}

  /// A part of a tensor, which is stored as an item of its own.
  ///
  /// @param offsets the index of the chunk's first element in the tensor, along each axis
  /// @param item the extent of its archive in a file
  record Chunk(TensorShape offsets, TensorShape shape, Extent item) {}

  /// A pickled value that is no tensor.
  ///
  /// @param item the extent of its archive in a file
  record Value(String name, Extent item) {}

  /// The key of a chunk: the tensor's name and the chunk's offsets.
  private record Key(String name, TensorShape offsets) implements Comparable<Key> {
    @Override
    public int compareTo(Key other) {
      int names = name.compareTo(other.name);
      return names != 0 ? names : Arrays.compare(offsets.toArray(), other.offsets.toArray());
    }
  }

  private final FileBytes bytes;
  private final Map<Key, Extent> items = new HashMap<>();
  private final Map<String, Extent> valueItems = new HashMap<>();
  private final List<Value> values = new ArrayList<>();
  private final Map<String, Location> files = new HashMap<>();

  DcpMetadata(FileBytes bytes) {
    this.bytes = bytes;
  }

  /// Returns the values that are no tensors; call [#read] first.
  List<Value> values() {
    return values;
  }

  /// Returns the tensors in the order of the metadata.
  List<Tensor> read() {
    try (PickleInput input = PickleInput.of(bytes, new Extent(bytes.file(), 0, bytes.length()))) {
      PickleReader reader = new PickleReader(input, DcpMetadata::isKnown);
      if (!(reader.read() instanceof Instance metadata) || !is(metadata, "metadata.Metadata")) {
        throw malformed(0, "not-dcp", "the pickle is not the metadata of a distributed checkpoint");
      }
      dict(metadata, "storage_data").forEach(this::addItem);
      List<Tensor> tensors = new ArrayList<>();
      dict(metadata, "state_dict_metadata")
          .forEach((name, described) -> {
            if (!(name instanceof Text(String text) && described instanceof Instance storage)) {
              return;
            }
            Extent item = valueItems.get(text);
            if (is(storage, "metadata.TensorStorageMetadata")) {
              tensors.add(tensor(text, storage));
            } else if (item != null) {
              values.add(new Value(text, item));
            }
          });
      return tensors;
    }
  }

  /// Returns whether a pickle may name a function or class. The reader calls none of them.
  private static boolean isKnown(Global global) {
    return TorchTypes.isKnown(global)
        || global.module().startsWith("torch.distributed.")
        || global.module().startsWith("pathlib");
  }

  private static boolean is(Instance instance, String name) {
    return instance.type().path().equals(MODULE + name);
  }

  private void addItem(PickleValue key, PickleValue value) {
    if (!(key instanceof Instance index && value instanceof Instance info)) {
      throw malformed(0, "invalid-metadata", "storage_data does not map indexes to places");
    }
    PickleValue offset = fields(index).getOrDefault(new Text("offset"), Constant.NONE);
    if (fields(info).get(new Text("transform_descriptors")) instanceof Items(var transforms)
        && !transforms.isEmpty()) {
      if (offset == Constant.NONE) {
        return;
      }
      throw malformed(
          info.offset(), "unsupported-transform", "an item was transformed when it was written");
    }
    Extent place =
        new Extent(
            file(text(info, "relative_path"), info),
            number(info, "offset"),
            number(info, "length"));
    String name = text(index, "fqn");
    if (offset == Constant.NONE) {
      valueItems.put(name, place);
    } else {
      items.put(new Key(name, shape(index, offset)), place);
    }
  }

  private Location file(String name, Instance info) {
    Location known = files.get(name);
    if (known != null) {
      return known;
    }
    if (!JsonMembers.isFileName(name) || name.equals("..") || name.equals(".")) {
      throw malformed(
          info.offset(), "unsafe-file-name", "'" + name + "' cannot be a file of the folder");
    }
    Location file = bytes.file().sibling(name);
    files.put(name, file);
    return file;
  }

  private Tensor tensor(String name, Instance tensor) {
    TensorShape shape = shape(tensor, field(tensor, "size"));
    DType dtype = dtype(name, tensor);
    if (StoredTensor.bytes(dtype, shape).isEmpty()) {
      throw malformed(
          tensor.offset(),
          "shape-overflow",
          dtype + " " + shape + " has too many elements to count");
    }
    if (!(field(tensor, "chunks") instanceof Items(List<PickleValue> chunks))) {
      throw malformed(tensor.offset(), "invalid-metadata", "tensor '" + name + "' has no chunks");
    }
    List<Chunk> made = new ArrayList<>();
    for (PickleValue each : chunks) {
      if (!(each instanceof Instance chunk)) {
        throw malformed(tensor.offset(), "invalid-metadata", "a chunk of '" + name + "' is none");
      }
      TensorShape offsets = shape(chunk, field(chunk, "offsets"));
      TensorShape sizes = shape(chunk, field(chunk, "sizes"));
      requireWithin(name, shape, offsets, sizes, chunk);
      Extent item = items.get(new Key(name, offsets));
      if (item == null) {
        throw malformed(
            chunk.offset(), "missing-chunk", "no file has tensor '" + name + "' from " + offsets);
      }
      made.add(new Chunk(offsets, sizes, item));
    }
    return new Tensor(name, dtype, shape, made);
  }

  private DType dtype(String name, Instance tensor) {
    PickleValue properties = field(tensor, "properties");
    PickleValue type =
        switch (properties instanceof Instance instance
            ? instance.state().orElse(Constant.NONE)
            : Constant.NONE) {
          case Items(List<PickleValue> values) when !values.isEmpty() -> values.getFirst();
          case Dict dict -> dict.get("dtype").orElse(Constant.NONE);
          default -> Constant.NONE;
        };
    String dtype = type instanceof Global global ? global.name() : "";
    return TorchTypes.dtype(dtype)
        .orElseThrow(() ->
            malformed(
                tensor.offset(),
                "unsupported-dtype",
                "tensor '" + name + "' has dtype torch." + dtype + ", which is not read"));
  }

  private void requireWithin(
      String name, TensorShape shape, TensorShape offsets, TensorShape sizes, Instance chunk) {
    boolean within = offsets.rank() == shape.rank() && sizes.rank() == shape.rank();
    for (int axis = 0; within && axis < shape.rank(); axis++) {
      within = offsets.dimension(axis) <= shape.dimension(axis) - sizes.dimension(axis);
    }
    if (!within) {
      throw malformed(
          chunk.offset(),
          "chunk-past-tensor",
          "a chunk %s from %s on of tensor '%s' is not within %s"
              .formatted(sizes, offsets, name, shape));
    }
  }

  /// The attributes of an object.
  private SequencedMap<PickleValue, PickleValue> fields(Instance instance) {
    if (instance.state().orElse(Constant.NONE) instanceof Dict(var entries)) {
      return entries;
    }
    return new LinkedHashMap<>();
  }

  private PickleValue field(Instance instance, String name) {
    PickleValue value = fields(instance).get(new Text(name));
    if (value == null) {
      throw malformed(
          instance.offset(), "invalid-metadata", instance.type().path() + " has no " + name);
    }
    return value;
  }

  private SequencedMap<PickleValue, PickleValue> dict(Instance instance, String name) {
    if (field(instance, name) instanceof Dict(var entries)) {
      return entries;
    }
    throw malformed(instance.offset(), "invalid-metadata", name + " is not a dictionary");
  }

  private String text(Instance instance, String name) {
    if (field(instance, name) instanceof Text(String text)) {
      return text;
    }
    throw malformed(instance.offset(), "invalid-metadata", name + " is not a string");
  }

  private long number(Instance instance, String name) {
    if (field(instance, name) instanceof Int(long number)
        && number >= 0
        && number <= Long.MAX_VALUE / 2) {
      return number;
    }
    throw malformed(instance.offset(), "invalid-metadata", name + " is not a place in a file");
  }

  private TensorShape shape(Instance holder, PickleValue value) {
    long[] axes = PickleValue.numbers(value);
    if (axes == null
        || axes.length > TorchTensors.MAX_RANK
        || Arrays.stream(axes).anyMatch(length -> length < 0)) {
      throw malformed(holder.offset(), "invalid-metadata", "sizes or offsets are none");
    }
    return TensorShape.of(axes);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(bytes.file(), offset, kind, detail);
  }
}
