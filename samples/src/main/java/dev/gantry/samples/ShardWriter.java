package dev.gantry.samples;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.SplittableRandom;
import java.util.function.LongConsumer;

/// Writes safetensors files full of seeded random bits, and digests them on the way. For one
/// thread. Not durable: these files are made to be thrown away.
final class ShardWriter {
  /// A tensor to write, of a multiple of 8 bytes.
  record Tensor(String name, DType dtype, Shape shape) {
    long bytes() {
      return shape.elements().orElseThrow() * dtype.bits() / Byte.SIZE;
    }
  }

  private static final int CHUNK_BYTES = 4 << 20;
  private static final int PAGE_BYTES = 4096;

  private final SplittableRandom random;
  private final LongConsumer written;

  /// @param written hears how many more bytes were written
  ShardWriter(long seed, LongConsumer written) {
    this.random = new SplittableRandom(seed);
    this.written = written;
  }

  /// Writes a new file.
  ///
  /// @return each tensor's SHA-256 in lower-case hexadecimal
  SequencedMap<String, String> write(Path file, List<Tensor> tensors) throws IOException {
    SequencedMap<String, String> digests = new LinkedHashMap<>();
    try (FileChannel channel =
            FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        // Outside of the heap and of what the JVM bounds as the heap.
        Arena arena = Arena.ofConfined()) {
      ByteBuffer chunk =
          arena.allocate(CHUNK_BYTES, Long.BYTES).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      writeAll(channel, ByteBuffer.wrap(header(tensors)));
      for (Tensor tensor : tensors) {
        MessageDigest sha256 = Digests.sha256();
        for (long left = tensor.bytes(); left > 0; left -= chunk.limit()) {
          chunk.clear().limit((int) Math.min(left, CHUNK_BYTES));
          while (chunk.hasRemaining()) {
            chunk.putLong(random.nextLong());
          }
          sha256.update(chunk.flip());
          writeAll(channel, chunk.rewind());
          written.accept(chunk.limit());
        }
        digests.put(tensor.name(), HexFormat.of().formatHex(sha256.digest()));
      }
    }
    return digests;
  }

  private static void writeAll(FileChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  /// Length and JSON, padded with spaces so that the data starts on a page.
  private static byte[] header(List<Tensor> tensors) throws IOException {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    text.writeBytes(new byte[Long.BYTES]);
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.writeStartObject();
      long offset = 0;
      for (Tensor tensor : tensors) {
        json.writeObjectFieldStart(tensor.name());
        json.writeStringField("dtype", tensor.dtype().name());
        long[] shape = tensor.shape().toArray();
        json.writeFieldName("shape");
        json.writeArray(shape, 0, shape.length);
        json.writeFieldName("data_offsets");
        json.writeArray(new long[] {offset, offset + tensor.bytes()}, 0, 2);
        json.writeEndObject();
        offset += tensor.bytes();
      }
      json.writeEndObject();
    }
    int padding = -text.size() & (PAGE_BYTES - 1);
    text.writeBytes(" ".repeat(padding).getBytes(StandardCharsets.US_ASCII));
    byte[] header = text.toByteArray();
    ByteBuffer.wrap(header)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length - (long) Long.BYTES);
    return header;
  }

  /// Writes `model.safetensors.index.json`.
  ///
  /// @param shards the tensors of each file, by its name
  static Path writeIndex(Path folder, SequencedMap<String, List<Tensor>> shards)
      throws IOException {
    List<Tensor> all = new ArrayList<>();
    shards.values().forEach(all::addAll);
    Path index = folder.resolve("model.safetensors.index.json");
    try (JsonGenerator json =
        new JsonFactory().createGenerator(index.toFile(), JsonEncoding.UTF8)) {
      json.useDefaultPrettyPrinter();
      json.writeStartObject();
      json.writeObjectFieldStart("metadata");
      json.writeNumberField("total_size", all.stream().mapToLong(Tensor::bytes).sum());
      json.writeEndObject();
      json.writeObjectFieldStart("weight_map");
      for (var shard : shards.entrySet()) {
        for (Tensor tensor : shard.getValue()) {
          json.writeStringField(tensor.name(), shard.getKey());
        }
      }
      json.writeEndObject();
      json.writeEndObject();
    }
    return index;
  }
}
