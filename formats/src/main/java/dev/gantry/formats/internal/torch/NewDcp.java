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
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// A folder of `torch.distributed.checkpoint` to be written, as one rank writes it: each tensor is one chunk.
public final class NewDcp {
  private static final String METADATA = "torch.distributed.checkpoint.metadata";
  private static final String DATA_FILE = "__0_0.distcp";

  private final Path folder;
  private final List<NewFile> files;
  private final long totalBytes;

  private NewDcp(Path folder, List<NewFile> files, long totalBytes) {
    this.folder = folder;
    this.files = files;
    this.totalBytes = totalBytes;
  }

  /// The place of a tensor's archive in the data file.
  private record Item(NewTensor tensor, long offset, long length) {}

  /// Lays out the files.
  ///
  /// @throws MisuseException if a name comes twice, or PyTorch has no dtype for a tensor
  public static NewDcp of(Path folder, List<NewTensor> tensors) {
    Set<String> names = new HashSet<>();
    List<Source> parts = new ArrayList<>();
    List<Item> items = new ArrayList<>();
    long offset = 0;
    for (NewTensor tensor : tensors) {
      if (!names.add(tensor.name())) {
        throw new MisuseException("two tensors have the name '" + tensor.name() + "'");
      }
      if (TorchTypes.name(tensor.dtype()).isEmpty()) {
        throw new MisuseException(
            "tensor '" + tensor.name() + "': PyTorch has no dtype for " + tensor.dtype());
      }
      TensorArchive archive = TensorArchive.of(tensor, offset);
      parts.add(archive.head());
      parts.add(tensor.source());
      parts.add(archive.tail());
      long length = archive.bytes() + tensor.source().length();
      items.add(new Item(tensor, offset, length));
      offset += length;
    }
    // The metadata gets its name last: a folder without it is none.
    return new NewDcp(
        folder,
        List.of(
            new NewFile(folder.resolve(DATA_FILE), parts),
            new NewFile(folder.resolve(DcpFormat.METADATA), List.of(part(metadata(items))))),
        tensors.stream().mapToLong(tensor -> tensor.source().length()).sum());
  }

  private static Source part(byte[] bytes) {
    return new Memory.OnHost(MemorySegment.ofArray(bytes));
  }

  private static byte[] metadata(List<Item> items) {
    PickleWriter pickle = new PickleWriter();
    var _ = pickle.object(METADATA, "Metadata").text("state_dict_metadata").op('}').op('(');
    for (Item item : items) {
      TensorShape shape = item.tensor().shape();
      var _ =
          pickle
              .text(item.tensor().name())
              .object(METADATA, "TensorStorageMetadata")
              .text("properties");
      properties(pickle, TorchTypes.name(item.tensor().dtype()));
      var _ =
          pickle
              .text("size")
              .size(shape)
              .text("chunks")
              .op(']')
              .object(METADATA, "ChunkStorageMetadata")
              .text("offsets")
              .size(origin(shape))
              .text("sizes")
              .size(shape)
              .endObject()
              .op('a')
              .endObject();
    }
    var _ = pickle.op('u').text("planner_data").op('}').op('(');
    for (Item item : items) {
      var _ = pickle.text(item.tensor().name()).text(item.tensor().name()).op(0x85);
    }
    var _ = pickle.op('u').text("storage_data").op('}').op('(');
    for (Item item : items) {
      var _ =
          pickle
              .object(METADATA, "MetadataIndex")
              .text("fqn")
              .text(item.tensor().name())
              .text("offset")
              .size(origin(item.tensor().shape()))
              .text("index")
              .integer(0)
              .endObject()
              .object("torch.distributed.checkpoint.filesystem", "_StorageInfo")
              .text("relative_path")
              .text(DATA_FILE)
              .text("offset")
              .integer(item.offset())
              .text("length")
              .integer(item.length())
              .endObject();
    }
    return pickle.op('u').endObject().end();
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
