// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.OutputFolder;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A folder of `torch.distributed.checkpoint` to be written, as one rank writes it: each tensor is one chunk.
public final class NewDcp {
  private static final String METADATA = "torch.distributed.checkpoint.metadata";

  /// The file that makes a folder a distributed checkpoint.
  public static final String METADATA_FILE = DcpFormat.METADATA;

  private static final String DATA_FILE = "__0_0.distcp";

  private final Path folder;
  private final List<NewFile> files;
  private final long totalBytes;

  private NewDcp(Path folder, List<NewFile> files, long totalBytes) {
    this.folder = folder;
    this.files = files;
    this.totalBytes = totalBytes;
  }

  /// The offset and length of an archive in the data file, in bytes.
  private record Place(long offset, long length) {}

  /// Lays out the files of tensors without other values; throws as [#of(Path, List, Map)] does.
  public static NewDcp of(Path folder, List<NewTensor> tensors) {
    return of(folder, tensors, Map.of());
  }

  /// Lays out the files.
  ///
  /// @param values the values that are no tensors, by name: Longs, Doubles and Strings
  /// @throws MisuseException if a name comes twice, or PyTorch has no dtype for a tensor
  public static NewDcp of(Path folder, List<NewTensor> tensors, Map<String, Object> values) {
    SequencedMap<String, Place> places = new LinkedHashMap<>();
    List<Source> parts = new ArrayList<>();
    long offset = 0;
    for (NewTensor tensor : tensors) {
      if (TorchTypes.name(tensor.dtype()).isEmpty()) {
        throw new MisuseException(
            "tensor '" + tensor.name() + "': PyTorch has no dtype for " + tensor.dtype());
      }
      TensorArchive archive = TensorArchive.of(tensor, offset);
      parts.add(archive.head());
      parts.add(tensor.source());
      parts.add(archive.tail());
      offset = place(places, tensor.name(), offset, archive.bytes() + tensor.source().length());
    }
    for (Map.Entry<String, Object> value : values.entrySet()) {
      Memory.OnHost archive = TensorArchive.ofValue(value.getValue());
      parts.add(archive);
      offset = place(places, value.getKey(), offset, archive.length());
    }
    // The metadata gets its name last, since a folder without metadata is no checkpoint.
    return new NewDcp(
        folder,
        List.of(
            new NewFile(folder.resolve(DATA_FILE), parts),
            new NewFile(folder.resolve(METADATA_FILE), List.of(part(metadata(places, tensors))))),
        tensors.stream().mapToLong(tensor -> tensor.source().length()).sum());
  }

  /// Adds an item, and returns the offset at which the next item begins.
  private static long place(Map<String, Place> places, String name, long offset, long length) {
    if (places.put(name, new Place(offset, length)) != null) {
      throw new MisuseException("two tensors or values have the name '" + name + "'");
    }
    return offset + length;
  }

  private static Source part(byte[] bytes) {
    return new Memory.OnHost(MemorySegment.ofArray(bytes));
  }

  private static byte[] metadata(SequencedMap<String, Place> places, List<NewTensor> tensors) {
    Map<String, NewTensor> byName = new HashMap<>();
    tensors.forEach(tensor -> byName.put(tensor.name(), tensor));
    PickleWriter pickle = new PickleWriter();
    var _ = pickle.object(METADATA, "Metadata").text("state_dict_metadata").op('}').op('(');
    for (String name : places.keySet()) {
      var _ = pickle.text(name);
      NewTensor tensor = byName.get(name);
      if (tensor == null) {
        var _ = pickle.global(METADATA, "BytesStorageMetadata").op(')').op(0x81);
      } else {
        storage(pickle, tensor);
      }
    }
    var _ = pickle.op('u').text("planner_data").op('}').op('(');
    for (String name : places.keySet()) {
      var _ = pickle.text(name).text(name).op(0x85);
    }
    var _ = pickle.op('u').text("storage_data").op('}').op('(');
    places.forEach((name, place) -> {
      var _ = pickle.object(METADATA, "MetadataIndex").text("fqn").text(name).text("offset");
      NewTensor tensor = byName.get(name);
      if (tensor == null) {
        var _ = pickle.op('N').text("index").op('N');
      } else {
        var _ = pickle.size(origin(tensor.shape())).text("index").integer(0);
      }
      var _ =
          pickle
              .endObject()
              .object("torch.distributed.checkpoint.filesystem", "_StorageInfo")
              .text("relative_path")
              .text(DATA_FILE)
              .text("offset")
              .integer(place.offset())
              .text("length")
              .integer(place.length())
              .endObject();
    });
    return pickle.op('u').endObject().end();
  }

  private static void storage(PickleWriter pickle, NewTensor tensor) {
    var _ = pickle.object(METADATA, "TensorStorageMetadata").text("properties");
    properties(pickle, TorchTypes.name(tensor.dtype()));
    var _ =
        pickle
            .text("size")
            .size(tensor.shape())
            .text("chunks")
            .op(']')
            .object(METADATA, "ChunkStorageMetadata")
            .text("offsets")
            .size(origin(tensor.shape()))
            .text("sizes")
            .size(tensor.shape())
            .endObject()
            .op('a')
            .endObject();
  }

  private static void properties(PickleWriter pickle, String dtype) {
    var _ =
        pickle
            .global(METADATA, "TensorProperties")
            .op(')')
            .op(0x81)
            .op('(')
            .global("torch", dtype)
            .global("torch.serialization", "_get_layout")
            .text("torch.strided")
            .op(0x85)
            .op('R')
            .op(0x89)
            .global(METADATA, "_MEM_FORMAT_ENCODING")
            .integers(0)
            .op('R')
            .op(0x89)
            .op('t')
            .op('b');
  }

  private static TensorShape origin(TensorShape shape) {
    return TensorShape.of(new long[shape.rank()]);
  }

  /// The files. `.metadata` must get its name last.
  public List<NewFile> files() {
    return files;
  }

  /// The size of all tensors together, in bytes.
  public long totalBytes() {
    return totalBytes;
  }

  /// Writes the folder, and returns when its files are on the disk under their names. The folder is made if
  /// it is missing; it must hold no distributed checkpoint yet. A failure leaves it as it was before.
  ///
  /// @throws MisuseException if the folder holds such files
  /// @throws dev.gantry.core.TransferException if the folder cannot be made, or a write fails
  public WriteReport write(GantrySession session, WriteOptions options) {
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of weights");
    Cleanup.orUndo(this::requireFree, () -> output.takeBack(() -> {}));
    WriteReport report =
        Cleanup.orUndo(
            () -> session.write(files, options), () -> output.takeBack(() -> removeFiles(session)));
    output.release();
    return report;
  }

  private void requireFree() {
    for (NewFile file : files) {
      if (Files.exists(file.file(), LinkOption.NOFOLLOW_LINKS)) {
        throw new MisuseException(file.file() + " is there; name another place");
      }
    }
  }

  private void removeFiles(GantrySession session) {
    files.reversed().forEach(file -> session.folders().removeFile(file.file()));
  }
}
