// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.s3.internal.S3Call.Answer;
import dev.gantry.s3.internal.S3Call.Body;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.MultipartUpload;
import software.amazon.awssdk.services.s3.model.Part;

/// The upload of a file to S3. Not thread-safe. It takes these steps:
///
/// 1. A file of at most one part is sent in a single request, and the upload ends.
/// 2. Otherwise a multipart upload is created. Meanwhile the unfinished uploads of the same object
/// are listed; if one has parts of this file, it is resumed instead.
/// 3. The missing parts are sent, many at once. A part is present if its MD5 is that of the file's
/// bytes.
/// 4. The upload is completed. Before this step, the object is unchanged.
///
/// A failure aborts the upload. A process that is killed or interrupted leaves it, and step 2 of
/// the next upload finds it. If the credentials may not list uploads or their parts, all parts are
/// sent.
final class S3Upload {
  /// S3's lower bound of a part. One connection has a maximum rate, so many small parts in
  /// parallel arrive sooner than a few large ones.
  private static final long SMALLEST_PART = 5L << 20;

  /// S3's upper bound of parts.
  private static final int MAX_PARTS = 10_000;

  /// One core sends as much as 24 connections carry. Each part in flight takes memory that the CRT
  /// client newly allocates, so more parts than that are slower.
  private static final int PARTS_AT_ONCE =
      Math.clamp(24L * Runtime.getRuntime().availableProcessors(), 48, 192);

  private static final int HASHED_BYTES = 1 << 20;

  private final S3Clients clients;
  private final FileChannel file;
  private final Path path;
  private final long size;
  private final Location target;
  private final ObjectName name;
  private final URI url;
  private final long partBytes;
  private final Cancellation cancellation = new Cancellation();

  private S3Upload(S3Clients clients, Path path, FileChannel file, Location target)
      throws IOException {
    this.clients = clients;
    this.path = path;
    this.file = file;
    this.size = file.size();
    this.target = target;
    this.name = ObjectName.ofObject(target);
    this.url = clients.url(name);
    this.partBytes = partBytes(size);
  }

  /// Returns the length of each part but the last of a file with a size.
  static long partBytes(long size) {
    long least = Math.ceilDiv(size, MAX_PARTS);
    return Math.max(SMALLEST_PART, Math.ceilDiv(least, SMALLEST_PART) * SMALLEST_PART);
  }

  /// Uploads a file, and returns when the object exists.
  static void run(S3Clients clients, Path path, Location target) {
    try (FileChannel file = FileChannel.open(path)) {
      new S3Upload(clients, path, file, target).run();
    } catch (IOException e) {
      throw FileErrors.of("read", path.toString(), e);
    }
  }

  private void run() {
    if (size <= partBytes) {
      Answer _ = await(call("PutObject", "PUT", "", part(0)));
      return;
    }
    CompletableFuture<Answer> beginning =
        call("CreateMultipartUpload", "POST", "?uploads", Body.of(new byte[0]));
    List<MultipartUpload> before = begun();
    String id = idOf(await(beginning));
    try {
      SortedMap<Integer, String> there = new TreeMap<>();
      String fresh = id;
      Optional<String> cut =
          resumable(before.stream().filter(one -> !one.uploadId().equals(fresh)), there);
      if (cut.isPresent()) {
        // If this fails, the parts that are there stay for the next upload.
        clients.abort(target, name.bucket(), name.key(), fresh);
        id = cut.get();
      }
      sendMissing(id, there);
      complete(id, there);
    } catch (GantryException e) {
      if (!isCancelled(e)) {
        abort(id, e);
      }
      throw e;
    }
  }

  private static boolean isCancelled(GantryException e) {
    return e instanceof TransferException failed && failed.failure() instanceof Failure.Cancelled;
  }

  private int parts() {
    return Math.toIntExact(Math.ceilDiv(size, partBytes));
  }

  /// Returns the unfinished uploads of this object, the latest first.
  private List<MultipartUpload> begun() {
    return unlessRefused(() -> clients.begun(target, name)).stream()
        .filter(upload -> upload.key().equals(name.key()))
        .sorted(Comparator.comparing(MultipartUpload::initiated).reversed())
        .toList();
  }

  /// Asks for a list, which is empty if the server refuses it.
  private static <T> List<T> unlessRefused(Supplier<List<T>> list) {
    try {
      return list.get();
    } catch (TransferException e) {
      if (isCancelled(e)) {
        throw e;
      }
      return List.of();
    }
  }

  /// Finds an unfinished upload that has parts of this file.
  ///
  /// @param there receives the ETag of each part that is present, by its number
  private Optional<String> resumable(Stream<MultipartUpload> begun, Map<Integer, String> there) {
    for (MultipartUpload upload : begun.toList()) {
      // The upload may have ended since it was listed.
      for (Part part : unlessRefused(() -> clients.parts(target, name, upload.uploadId()))) {
        if (part.partNumber() <= parts() && isSame(part)) {
          there.put(part.partNumber(), part.eTag());
        }
      }
      if (!there.isEmpty()) {
        return Optional.of(upload.uploadId());
      }
    }
    return Optional.empty();
  }

  private boolean isSame(Part part) {
    long from = (part.partNumber() - 1) * partBytes;
    long bytes = Math.min(partBytes, size - from);
    return part.size() == bytes && bare(part.eTag()).equals(md5(from, bytes));
  }

  /// Returns an ETag without its quotes; empty for null.
  private static String bare(@Nullable String etag) {
    return etag == null ? "" : etag.replace("\"", "");
  }

  private static MessageDigest md5() {
    try {
      return MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private String md5(long from, long bytes) {
    try {
      MessageDigest digest = md5();
      ByteBuffer piece = ByteBuffer.allocate(HASHED_BYTES);
      for (long at = from; at < from + bytes; at += piece.limit()) {
        piece.clear().limit((int) Math.min(HASHED_BYTES, from + bytes - at));
        while (piece.hasRemaining()) {
          if (file.read(piece, at + piece.position()) < 0) {
            return "";
          }
        }
        digest.update(piece.flip());
      }
      return HexFormat.of().formatHex(digest.digest());
    } catch (IOException e) {
      throw FileErrors.of("read", path.toString(), e);
    }
  }

  private String idOf(Answer begun) {
    String id = begun.element("UploadId");
    if (id.isEmpty()) {
      throw new TransferException(
          "POST", target.toString(), new Failure.Remote(0, "the server named no upload"));
    }
    return id;
  }

  /// @param etags receives the ETags of the parts that are sent
  private void sendMissing(String id, Map<Integer, String> etags) {
    record Sending(int number, CompletableFuture<Answer> end) {}
    Deque<Sending> sending = new ArrayDeque<>();
    try {
      for (int number = 1; number <= parts() || !sending.isEmpty(); number++) {
        if (number <= parts() && !etags.containsKey(number)) {
          String query = "?partNumber=" + number + "&uploadId=" + encoded(id);
          sending.add(
              new Sending(
                  number, call("UploadPart", "PUT", query, part((number - 1) * partBytes))));
        }
        if (sending.size() >= PARTS_AT_ONCE || (number >= parts() && !sending.isEmpty())) {
          Sending first = sending.remove();
          etags.put(first.number(), await(first.end()).etag());
        }
      }
    } finally {
      // Ends the parts under way. The CRT client may still ask for their bytes, which fails once
      // the file is closed.
      cancellation.cancel();
    }
  }

  private void complete(String id, SortedMap<Integer, String> etags) {
    String parts =
        etags.entrySet().stream()
            .map(part ->
                "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>"
                    .formatted(part.getKey(), part.getValue().replace("\"", "&quot;")))
            .collect(
                Collectors.joining("", "<CompleteMultipartUpload>", "</CompleteMultipartUpload>"));
    String whole = etagOf(etags.values());
    Optional<String> before = whole.isEmpty() ? etagThere() : Optional.empty();
    try {
      Answer _ =
          await(
              S3Call.start(
                  clients,
                  "CompleteMultipartUpload",
                  "POST",
                  target.toString(),
                  URI.create(url + "?uploadId=" + encoded(id)),
                  Body.of(parts.getBytes(StandardCharsets.UTF_8)),
                  new Cancellation()));
    } catch (TransferException e) {
      // An earlier attempt may have completed the upload, and its answer was lost; or another
      // process has ended the upload.
      if (!e.isNotFound() || !isThere(whole, before)) {
        throw e;
      }
    }
  }

  /// Returns the ETag that S3 makes of parts: the MD5 of their MD5s, and their number; empty if the
  /// ETags of this server are no MD5s.
  private String etagOf(Collection<String> etags) {
    List<String> tags = etags.stream().map(S3Upload::bare).toList();
    if (!tags.getFirst().equals(md5(0, partBytes))
        || !tags.stream().allMatch(tag -> tag.matches("[0-9a-f]{32}"))) {
      return "";
    }
    MessageDigest digest = md5();
    tags.forEach(tag -> digest.update(HexFormat.of().parseHex(tag)));
    return HexFormat.of().formatHex(digest.digest()) + "-" + tags.size();
  }

  /// Returns the ETag of the object that the upload will replace. This is "" if there is no object,
  /// and empty if the server does not tell.
  private Optional<String> etagThere() {
    try {
      return Optional.of(bare(clients.head(target, name).eTag()));
    } catch (TransferException e) {
      if (isCancelled(e)) {
        throw e;
      }
      return e.isNotFound() ? Optional.of("") : Optional.empty();
    }
  }

  /// Whether the object is this upload's, and not the one before it.
  ///
  /// @param whole the ETag of this upload's object; empty if it is not known
  /// @param before as [#etagThere] returned it before the upload could be completed
  private boolean isThere(String whole, Optional<String> before) {
    HeadObjectResponse there = clients.head(target, name);
    Long bytes = there.contentLength();
    String tag = bare(there.eTag());
    return bytes != null
        && bytes == size
        && (whole.isEmpty()
            ? before.filter(old -> !old.equals(tag)).isPresent()
            : tag.equals(whole));
  }

  private void abort(String id, GantryException failure) {
    try {
      clients.abort(target, name.bucket(), name.key(), id);
    } catch (TransferException besides) {
      failure.addSuppressed(besides);
    }
  }

  private CompletableFuture<Answer> call(String operation, String method, String query, Body body) {
    return S3Call.start(
        clients, operation, method, target.toString(), URI.create(url + query), body, cancellation);
  }

  private static String encoded(String id) {
    return URLEncoder.encode(id, StandardCharsets.UTF_8);
  }

  /// Waits for an answer. An interruption ends this upload; the next one can resume its parts.
  private Answer await(CompletableFuture<Answer> answer) {
    return clients.await("PUT", target, () -> answer);
  }

  /// Returns the body of a part, which reads the file while it is sent.
  private Body part(long from) {
    long bytes = Math.min(partBytes, size - from);
    return new Body() {
      @Override
      public HttpRequestBodyStream open() {
        return new FilePart(from, bytes);
      }

      @Override
      public long length() {
        return bytes;
      }
    };
  }

  private final class FilePart implements HttpRequestBodyStream {
    private final long from;
    private final long bytes;
    private long done;

    FilePart(long from, long bytes) {
      this.from = from;
      this.bytes = bytes;
    }

    @Override
    public boolean sendRequestBody(ByteBuffer target) {
      int limit = target.limit();
      target.limit((int) Math.min(limit, target.position() + bytes - done));
      try {
        while (target.hasRemaining()) {
          int count = file.read(target, from + done);
          if (count < 0) {
            throw new IOException("the file ends before its size");
          }
          done += count;
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } finally {
        target.limit(limit);
      }
      return done == bytes;
    }

    @Override
    public boolean resetPosition() {
      done = 0;
      return true;
    }

    @Override
    public long getLength() {
      return bytes;
    }
  }
}
