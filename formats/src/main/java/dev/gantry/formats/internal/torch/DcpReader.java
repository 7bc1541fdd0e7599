// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.internal.torch.DcpMetadata.Chunk;
import dev.gantry.formats.internal.torch.DcpMetadata.Tensor;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Finds the bytes of the tensors of a distributed checkpoint. A tensor's bytes lie in the files
/// of all ranks that saved a chunk of it.
final class DcpReader {
  /// The most copies of rows in one checkpoint. Each copy takes some hundred bytes of heap.
  private static final int MAX_COPIES = 1_000_000;

  /// The most values that are no tensors. More values, or longer ones, are a program's own data
  /// and are not read.
  private static final int MAX_VALUES = 4096;

  private static final long MAX_VALUE_BYTES = 1 << 16;

  private final FileBytes metadata;
  private final IdentityHashMap<Chunk, StoredTensor> chunks = new IdentityHashMap<>();
  private final List<WeightsCatalogue.Checksum> checksums = new ArrayList<>();
  private int pieces;

  DcpReader(FileBytes metadata) {
    this.metadata = metadata;
  }

  WeightsCatalogue read() {
    DcpMetadata described = new DcpMetadata(metadata);
    List<Tensor> tensors = described.read();
    Map<String, List<Chunk>> byFile = new TreeMap<>();
    ChunkCover cover = new ChunkCover(metadata.file());
    for (Tensor tensor : tensors) {
      cover.requireWhole(tensor);
      for (Chunk chunk : tensor.chunks()) {
        byFile.computeIfAbsent(chunk.item().file().toString(), _ -> new ArrayList<>()).add(chunk);
      }
    }
    List<Location> files = new ArrayList<>();
    byFile.values().forEach(ofFile -> files.add(readChunks(ofFile)));
    List<StoredTensor> joined = tensors.stream().map(this::joined).toList();
    return new WeightsCatalogue(
        DcpFormat.NAME, files, joined, notes(described.values()), checksums);
  }

  /// Reads the values that are no tensors, such as an epoch's number, as notes. Values that are
  /// not numbers, strings or short lists of these are ignored.
  private Map<String, String> notes(List<DcpMetadata.Value> values) {
    Map<Location, List<DcpMetadata.Value>> byFile =
        values.stream()
            .filter(value -> value.item().length() <= MAX_VALUE_BYTES)
            .limit(MAX_VALUES)
            .collect(
                Collectors.groupingBy(
                    value -> value.item().file(), LinkedHashMap::new, Collectors.toList()));
    Map<String, String> notes = new LinkedHashMap<>();
    byFile.forEach((location, ofFile) -> {
      try (FileBytes file = FileBytes.open(metadata.session(), location)) {
        for (DcpMetadata.Value value : ofFile) {
          requireWithin(file, value.item());
          archive(file, value.item()).note().ifPresent(note -> notes.put(value.name(), note));
        }
      }
    });
    return notes;
  }

  private static TorchArchive archive(FileBytes file, Extent item) {
    return new TorchArchive(file, new Extent(file.file(), item.offset(), item.length()));
  }

  private static void requireWithin(FileBytes file, Extent item) {
    if (item.end() > file.length()) {
      throw new MalformedFileException(
          file.file(),
          file.length(),
          "item-past-end",
          "an item ends at byte " + item.end() + ", and the file before");
    }
  }

  /// Reads the archives of the chunks in one file.
  ///
  /// @return the file's location with the version that was read
  private Location readChunks(List<Chunk> ofFile) {
    ofFile.sort(Comparator.comparingLong(chunk -> chunk.item().offset()));
    try (FileBytes file = FileBytes.open(metadata.session(), ofFile.getFirst().item().file())) {
      long end = 0;
      for (Chunk chunk : ofFile) {
        Extent item = chunk.item();
        if (item.offset() < end) {
          throw new MalformedFileException(
              file.file(), item.offset(), "items-overlap", "an item begins inside another");
        }
        end = item.end();
        requireWithin(file, item);
        TorchArchive archive = archive(file, item);
        StateDict found = archive.read();
        StoredTensor tensor = found.tensors().get("");
        if (tensor == null || !tensor.shape().equals(chunk.shape())) {
          throw new MalformedFileException(
              file.file(),
              item.offset(),
              "wrong-chunk",
              "the item is not a tensor of the shape "
                  + chunk.shape()
                  + ", which the metadata states");
        }
        chunks.put(chunk, tensor);
        checksums.addAll(archive.checksums());
      }
      return file.file();
    }
  }

  private StoredTensor joined(Tensor tensor) {
    for (Chunk chunk : tensor.chunks()) {
      StoredTensor found = found(chunk);
      if (found.dtype() != tensor.dtype()) {
        throw new MalformedFileException(
            found.extent().file(),
            found.extent().offset(),
            "wrong-chunk",
            "a chunk of tensor '%s' is %s, and the metadata says %s"
                .formatted(tensor.name(), found.dtype(), tensor.dtype()));
      }
    }
    if (tensor.chunks().size() == 1) {
      StoredTensor only = found(tensor.chunks().getFirst());
      return new StoredTensor(
          tensor.name(), only.dtype(), only.shape(), only.extent(), only.encoding());
    }
    boolean plain = tensor.chunks().stream().allMatch(chunk -> found(chunk).isPlain());
    List<Encoding.Joined.Part> parts = new ArrayList<>();
    for (Chunk chunk : tensor.chunks()) {
      StoredTensor found = found(chunk);
      if (parts.size() + pieces > MAX_COPIES) {
        throw tooManyPieces();
      }
      for (Copy2D rows : copies(tensor, chunk)) {
        long offset = plain ? found.extent().offset() : 0;
        parts.add(new Encoding.Joined.Part(found.extent().file(), rows.shifted(offset, 0)));
      }
    }
    pieces += parts.size();
    Extent first =
        tensor.chunks().isEmpty()
            ? new Extent(metadata.file(), 0, 0)
            : found(tensor.chunks().getFirst()).extent();
    Encoding encoding =
        plain
            ? new Encoding.Joined(parts)
            : new Encoding.Decoded("joined", (file, _, target) -> decode(file, tensor, target));
    return new StoredTensor(tensor.name(), tensor.dtype(), tensor.shape(), first, encoding);
  }

  private StoredTensor found(Chunk chunk) {
    StoredTensor tensor = chunks.get(chunk);
    if (tensor == null) {
      throw new IllegalStateException("no chunk of " + chunk.item());
    }
    return tensor;
  }

  /// Reads a tensor's chunks one after the other, if the CPU must decode any of them.
  private void decode(FileBytes file, Tensor tensor, MemorySegment target) {
    for (Chunk chunk : tensor.chunks()) {
      StoredTensor found = found(chunk);
      try (Arena arena = Arena.ofShared()) {
        MemorySegment bytes = arena.allocate(Math.max(1, found.bytes()), Long.BYTES);
        TensorReading.read(
            GantrySession.of(file.session()), found, bytes.asSlice(0, found.bytes()));
        copies(tensor, chunk).forEach(rows -> rows.run(bytes, target));
      }
    }
  }

  /// Returns the copies from a dense chunk into the tensor.
  private List<Copy2D> copies(Tensor tensor, Chunk chunk) {
    List<Copy2D> made = new ArrayList<>();
    if (chunk.shape().elements().orElseThrow() == 0) {
      return made;
    }
    TensorShape shape = tensor.shape();
    long elementBytes = tensor.dtype().bits() / Byte.SIZE;
    // Axes from `run` on lie end to end in the tensor; `outer` is the axis of the rows.
    int run = shape.rank();
    long width = elementBytes;
    long pitch = elementBytes;
    while (run > 0 && width == pitch) {
      run--;
      width *= chunk.shape().dimension(run);
      pitch *= shape.dimension(run);
    }
    int outer = run;
    long rows = 1;
    boolean even = true;
    while (outer > 0 && even) {
      outer--;
      rows *= chunk.shape().dimension(outer);
      even = chunk.shape().dimension(outer) == shape.dimension(outer);
    }
    long[] index = new long[outer];
    long source = 0;
    while (true) {
      long target = 0;
      for (int axis = 0; axis < shape.rank(); axis++) {
        long at = chunk.offsets().dimension(axis) + (axis < outer ? index[axis] : 0);
        target = target * shape.dimension(axis) + at;
      }
      if (made.size() == MAX_COPIES) {
        throw tooManyPieces();
      }
      made.add(new Copy2D(source, width, target * elementBytes, pitch, width, rows));
      source += width * rows;
      int axis = outer - 1;
      while (axis >= 0 && ++index[axis] == chunk.shape().dimension(axis)) {
        index[axis] = 0;
        axis--;
      }
      if (axis < 0) {
        return made;
      }
    }
  }

  private MalformedFileException tooManyPieces() {
    return malformed("too-many-pieces", "the chunks have more than " + MAX_COPIES + " pieces");
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(metadata.file(), 0, kind, detail);
  }
}
