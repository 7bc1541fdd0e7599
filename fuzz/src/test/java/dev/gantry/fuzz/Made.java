// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.webdataset.StoredIndex;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Small inputs of formats that have no corpus of small files. Gantry's writers make them, if a
/// format has a writer.
final class Made {
  private static final GantrySession SESSION = GantrySession.shared();
  private static final String GOLDEN = "formats/src/test/resources/dev/gantry/formats/";
  private static final String COMMIT = "0123456789abcdef0123456789abcdef01234567";
  private static final byte[] ONE =
      safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
  private static final byte[] OTHER =
      safetensors("{\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", 8);

  private Made() {}

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] safetensors(String header, int data) {
    return ByteBuffer.allocate(Long.BYTES + header.length() + data)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length())
        .put(bytes(header))
        .array();
  }

  private static byte[] bundle(Object... namesAndContents) {
    Map<String, byte[]> files = new LinkedHashMap<>();
    for (int i = 0; i < namesAndContents.length; i += 2) {
      Object content = namesAndContents[i + 1];
      files.put(
          namesAndContents[i].toString(),
          content instanceof byte[] all ? all : bytes(content.toString()));
    }
    return Bundle.of(files);
  }

  /// Returns two data files with an index, two data files without an index, and one data file.
  static List<byte[]> index() {
    String first = "model-00001-of-00002.safetensors";
    String second = "model-00002-of-00002.safetensors";
    String index =
        "{\"metadata\":{\"total_size\":11},\"weight_map\":{\"a\":\"%s\",\"b\":\"%s\"}}"
            .formatted(first, second);
    return List.of(
        bundle("model.safetensors.index.json", index, first, ONE, second, OTHER),
        bundle(first, ONE, second, OTHER),
        bundle("model.safetensors", ONE));
  }

  static List<byte[]> sums() {
    return List.of(Weights.exampleSums(ONE), Weights.exampleSums(OTHER));
  }

  /// Returns a file of records with its index, which was made for the modification time that all
  /// files have here.
  static List<byte[]> recordIndex() {
    String golden = GOLDEN + "internal/index/golden/";
    List<byte[]> records = SeedFiles.files(golden, "examples.tfrecord").all();
    List<byte[]> indexes = SeedFiles.files(golden, "examples.tfrecord.gantry-index").all();
    return List.of(
        bundle("r.tfrecord", records.getFirst(), "r.tfrecord.gantry-index", indexes.getFirst()));
  }

  static List<byte[]> archiveIndex() {
    List<byte[]> all = new ArrayList<>();
    for (byte[] tar :
        SeedFiles.files(
                "formats/src/test/resources/corpus/webdataset", "plain.tar|folders-and-dots.tar")
            .all()) {
      Path folder = Places.folder("made", Map.of("a.tar", tar));
      StoredIndex.build(SESSION, Location.of(folder.resolve("a.tar")), (_, _) -> {}).close();
      all.add(SeedFiles.bundle(folder, ""));
    }
    return all;
  }

  /// Returns the records of the corpus.
  static List<byte[]> examples() {
    List<byte[]> all = new ArrayList<>();
    for (byte[] file :
        SeedFiles.files("formats/src/test/resources/corpus/tfrecord", "examples.*").all()) {
      try (TfRecordReader reader =
          TfRecordReader.open(
              SESSION, Places.file("made/x.tfrecord", file), TfRecordOptions.defaults())) {
        while (reader.next()) {
          all.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
        }
      }
    }
    return all;
  }

  /// Returns a folder of two shards.
  static List<byte[]> shards() {
    Path folder = Places.folder("made", Map.of()).resolve("shards");
    List<Field> fields =
        List.of(
            new Field("x", DType.U8, TensorShape.of(3)),
            new Field("y", DType.I64, TensorShape.of()));
    ShardOptions options =
        ShardOptions.defaults()
            .withSamplesPerShard(2)
            .withBlockBytes(4096)
            .withMetadata(Map.of("a", "b"));
    try (ShardWriter writer = ShardWriter.create(SESSION, folder, fields, options)) {
      for (int i = 0; i < 3; i++) {
        writer.append(
            Map.of(
                "x",
                MemorySegment.ofArray(new byte[] {1, 2, 3}),
                "y",
                MemorySegment.ofArray(new byte[8])));
      }
      var _ = writer.finish();
    }
    return List.of(SeedFiles.bundle(folder, ""));
  }

  static List<byte[]> manifest() {
    return Bundle.files(checkpoints().getFirst()).entrySet().stream()
        .filter(file -> file.getKey().endsWith("manifest.json"))
        .map(Map.Entry::getValue)
        .toList();
  }

  /// Returns a folder with one checkpoint.
  static List<byte[]> checkpoints() {
    Path root = Places.folder("made", Map.of());
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", List.of(tensor("w"), tensor("v")));
    groups.put("optimizer", List.of(tensor("w.mean")));
    try (CheckpointStore store =
        CheckpointStore.open(SESSION, root, new Retention(3, 0, Optional.empty()), 24)) {
      var _ =
          store.save(
              new UnsavedCheckpoint(
                  7, groups, Map.of("version", "1"), Map.of("loss", 0.5), Map.of("note", "a")),
              WriteOptions.defaults().withThreads(1));
    }
    return List.of(SeedFiles.bundle(root, ".*\\.lock|\\..*"));
  }

  private static NewTensor tensor(String name) {
    return new NewTensor(
        name,
        DType.F32,
        TensorShape.of(2, 2),
        new Memory.OnHost(MemorySegment.ofArray(new byte[16])));
  }

  static List<byte[]> chats() {
    List<byte[]> all = new ArrayList<>();
    for (byte[] template : SeedFiles.files("models/src/test/resources/chat", ".*\\.jinja").all()) {
      all.add(
          bundle(
              "chat_template.jinja",
              template,
              "tokenizer_config.json",
              "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}"));
    }
    all.add(
        bundle(
            "tokenizer_config.json",
            "{\"chat_template\":[{\"name\":\"default\",\"template\":\"{% for m in messages %}{{"
                + " m['content'] | trim }}{% endfor %}\"}]}"));
    return all;
  }

  /// Returns the hub's list of a commit's files, and the file in which Python's library keeps such
  /// a list.
  static List<byte[]> trees() {
    return List.of(
        bytes(
            "[{\"type\":\"file\",\"path\":\"a.bin\",\"size\":3,\"oid\":\""
                + COMMIT
                + "\",\"lfs\":{\"oid\":\""
                + "ab".repeat(32)
                + "\",\"size\":9},\"xetHash\":\"x\"},{\"type\":\"directory\",\"path\":\"d\"}]"),
        bytes(
            "{\"format_version\":1,\"files\":{\"a.bin\":{\"size\":3,\"blob_id\":\""
                + COMMIT
                + "\",\"lfs_sha256\":\""
                + "ab".repeat(32)
                + "\",\"lfs_size\":9,\"xet_hash\":\"x\"}},\"sha\":\""
                + COMMIT
                + "\"}"));
  }

  /// Returns answers of the hub with a status, headers and a body, in the form of
  /// [dev.gantry.core.internal.hub.HubAnswers].
  static List<byte[]> hubAnswers() {
    String commit = "\u0000\n\n{\"sha\":\"" + COMMIT + "\"}\u001e";
    String file = "[{\"type\":\"file\",\"path\":\"a.bin\",\"size\":3,\"oid\":\"" + COMMIT + "\"}]";
    return List.of(
        bytes(commit + "\u0000\n\n" + file),
        bytes(commit + "\u0000Link: </next>; rel=\"next\"\n\n[]\u001e\u0000\n\n" + file),
        bytes(
            "\u0001X-Repo-Commit: "
                + COMMIT
                + "\nETag: \""
                + COMMIT
                + "\"\nX-Linked-Size: 3\nX-Linked-Etag: \""
                + COMMIT
                + "\"\n\nabc"),
        bytes("!X-Repo-Commit: " + COMMIT + "\nX-Error-Code: EntryNotFound\n\n"),
        bytes("\u000fLocation: /other\nX-Repo-Commit: " + COMMIT + "\n\n"));
  }

  /// Returns answers of S3 in the same form.
  static List<byte[]> s3Answers() {
    String object =
        "<Contents><Key>folder/a</Key><Size>3</Size><ETag>&quot;e&quot;</ETag></Contents>";
    String list =
        "<ListBucketResult><Name>bucket</Name><Prefix>folder/</Prefix>%s</ListBucketResult>";
    String more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
    return List.of(
        bytes("\u0000\n\n" + list.formatted(object)),
        bytes(
            "\u0001\n\n" + list.formatted(more + object) + "\u001e\u0000\n\n" + list.formatted("")),
        bytes("\u0002ETag: \"e\"\nLast-Modified: Sat, 03 Feb 2001 04:05:06 GMT\n\nabc"),
        bytes(" \n\n<Error><Code>NoSuchKey</Code><Message>m</Message></Error>"));
  }

  static List<byte[]> heads() {
    return List.of(
        bytes(
            """
            HTTP/1.1 206 Partial Content
            ETag: "one"
            Content-Range: bytes 0-0/1
            Content-Length: 1
            Last-Modified: Sat, 03 Feb 2001 04:05:06 GMT\
            """),
        bytes("HTTP/1.1 302 Found\nLocation: //other/x?y\nRetry-After: 1"),
        bytes("HTTP/1.0 416 Range\nContent-Range: bytes */0\nTransfer-Encoding: chunked"));
  }

  static List<byte[]> httpAnswers() {
    String head = "HTTP/1.1 206 P\r\nETag: \"one\"\r\nContent-Range: bytes 0-0/1\r\n";
    return List.of(
        bytes(head + "Content-Length: 1\r\n\r\nx"),
        bytes(head + "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nTrailer: any\r\n\r\n"),
        bytes("HTTP/1.1 100 Continue\r\n\r\n" + head + "\r\nx"),
        bytes("HTTP/1.1 307 T\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"),
        bytes("HTTP/1.1 416 R\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n"));
  }
}
