// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.formats.Field;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.internal.json.JsonWriter;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Writes a folder of labelled pictures as raw tensor shards. A sample is an image and the number
/// of its class. Pictures are decoded on all processors; samples keep the order of the files.
public record ImagesToShards(ImageFolder folder, ImageDecoding decoding, Path output) {
  /// The metadata key of the classes' names, which are in the order of their numbers.
  private static final String CLASSES = "classes";

  private static final long MAX_NOTE_BYTES = 8 << 20;
  private static final long MAX_FILE_BYTES = 1 << 30;
  private static final int AHEAD_PER_THREAD = 4;

  /// A picture whose decoding has been submitted.
  ///
  /// @param target the memory that the pixels are written to
  /// @param label the number of the picture's class
  private record Decoding(Future<?> done, MemorySegment target, int label) {}

  public WrittenFiles run(GantrySession session, ShardOptions options) throws IOException {
    Input.requireNoWeights(session, output);
    Field image = decoding.field("image");
    List<Field> fields = List.of(image, new Field("label", DType.I64, TensorShape.of()));
    ShardOptions noted = options.withMetadata(Map.of(CLASSES, classes()));
    int processors = Runtime.getRuntime().availableProcessors();
    long start = System.nanoTime();
    try (ShardWriter writer = ShardWriter.create(session, output, fields, noted);
        Progress bar = Progress.ofSteps("convert", folder.classes().size());
        Arena arena = Arena.ofShared();
        ExecutorService threads = Executors.newFixedThreadPool(processors)) {
      Deque<MemorySegment> idle = new ArrayDeque<>();
      for (int i = 0; i < processors * AHEAD_PER_THREAD; i++) {
        idle.add(arena.allocate(image.sampleBytes()));
      }
      Deque<Decoding> ahead = new ArrayDeque<>();
      for (int label = 0; label < folder.classes().size(); label++) {
        bar.onProgress(label, folder.classes().size());
        for (Path file : folder.pictures(folder.classes().get(label))) {
          if (idle.isEmpty()) {
            idle.add(append(writer, ahead.remove()));
          }
          MemorySegment target = idle.remove();
          ahead.add(new Decoding(threads.submit(() -> decode(file, target)), target, label));
        }
      }
      while (!ahead.isEmpty()) {
        append(writer, ahead.remove());
      }
      return WrittenFiles.of(output, writer.finish(), start);
    }
  }

  private String classes() {
    byte[] names =
        new JsonWriter("the note of the classes' names", MAX_NOTE_BYTES)
            .compact(json -> {
              json.writeStartArray();
              for (String name : folder.classes()) {
                json.writeString(name);
              }
              json.writeEndArray();
            });
    return new String(names, StandardCharsets.UTF_8);
  }

  private void decode(Path file, MemorySegment target) {
    try (Arena arena = Arena.ofConfined()) {
      if (Files.size(file) > MAX_FILE_BYTES) {
        throw new IOException("the file is longer than " + MAX_FILE_BYTES + " bytes");
      }
      byte[] bytes = Files.readAllBytes(file);
      MemorySegment encoded = arena.allocate(bytes.length);
      encoded.copyFrom(MemorySegment.ofArray(bytes));
      decoding.decode(encoded, target, 0);
    } catch (IOException e) {
      throw new MalformedFileException(
          file, 0, "invalid-image", Objects.requireNonNullElse(e.getMessage(), e.toString()));
    }
  }

  /// Waits for the decoded picture and appends it to the shards.
  ///
  /// @return the picture's memory, which can be used for another picture
  private static MemorySegment append(ShardWriter writer, Decoding decoding) {
    try {
      decoding.done().get();
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("convert", "a picture");
    } catch (ExecutionException e) {
      Cleanup.rethrow(Objects.requireNonNull(e.getCause()), "a decoder failed");
    }
    long[] label = {decoding.label()};
    writer.append(Map.of("image", decoding.target(), "label", MemorySegment.ofArray(label)));
    return decoding.target();
  }
}
