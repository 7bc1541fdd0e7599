// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.LinkServer;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.auth.credentials.CredentialsProvider;
import software.amazon.awssdk.crt.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.crt.auth.signing.AwsSigningConfig;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.io.ClientBootstrap;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3Client;
import software.amazon.awssdk.crt.s3.S3ClientOptions;
import software.amazon.awssdk.crt.s3.S3DirectBufferPoolOptions;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// Compares downloads of the same objects by the CRT client alone, to direct memory, and by Gantry, to host memory and
/// to a GPU, in turns. Both clients have parts of 8 MiB and a pool of direct buffers.
///
/// `S3Bench s3://bucket/folder/ [ROUNDS]`, with `AWS_ENDPOINT_URL_S3` (path style), `AWS_REGION` and keys in the
/// environment; `-Xmx64m -XX:MaxDirectMemorySize=4g`, of which each client has half.
///
/// `S3Bench loopback [ROUNDS] [GB]` starts a server that answers after 30 ms and limits each connection to 100 MB/s,
/// and has Gantry read by HTTP, too. The objects lie in `/dev/shm`, or in the folder of `-Dbench.folder`.
public final class S3Bench {
  private static final long DELAY_MILLIS = 30;
  private static final long CONNECTION_BYTES_PER_SECOND = 100_000_000;
  private static final int OBJECTS = 4;
  private static final long PART_BYTES = 8L << 20;
  private static final long POOL_BYTES = 2000L << 20;
  private static final double LINE_GBPS = 100;

  private S3Bench() {}

  private record Item(Location.Remote location, long bytes) {
    String path() {
      return "/" + location.uri().getRawAuthority() + location.uri().getRawPath();
    }
  }

  /// @param arguments a folder, the number of rounds, and the gigabytes of the objects on the loopback
  public static void main(String[] arguments) throws Exception {
    int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
    if (!arguments[0].equals("loopback")) {
      try (GantrySession session = GantrySession.open()) {
        Location.Remote folder = (Location.Remote) Location.of(arguments[0]);
        compare(session, items(session, session.list(folder).orElseThrow()), List.of(), rounds);
      }
      return;
    }
    double gigabytes = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 1;
    Path file =
        Files.createTempFile(Path.of(System.getProperty("bench.folder", "/dev/shm")), "link", "");
    try {
      write(file, (long) (gigabytes * 1e9 / OBJECTS));
      try (LinkServer server = LinkServer.start(file, DELAY_MILLIS, CONNECTION_BYTES_PER_SECOND)) {
        Map.of(
                "aws.endpointUrlS3", server.address(),
                "aws.region", "us-east-1",
                "aws.accessKeyId", "any",
                "aws.secretAccessKey", "any")
            .forEach(System::setProperty);
        try (GantrySession session = GantrySession.open()) {
          compare(
              session,
              items(session, names("s3://bucket/")),
              items(session, names(server.address() + "/bucket/")),
              rounds);
          compareUploads(session, file, rounds);
        }
      }
    } finally {
      Files.delete(file);
    }
  }

  private static void write(Path file, long bytes) throws IOException {
    byte[] piece = new byte[1 << 20];
    new Random(1).nextBytes(piece);
    try (OutputStream out = Files.newOutputStream(file)) {
      for (long left = bytes; left > 0; left -= piece.length) {
        out.write(piece, 0, (int) Math.min(left, piece.length));
      }
    }
  }

  private static List<Location> names(String folder) {
    return IntStream.range(0, OBJECTS).mapToObj(i -> Location.of(folder + "object-" + i)).toList();
  }

  private static List<Item> items(GantrySession session, List<Location> files) {
    List<Item> items = new ArrayList<>();
    for (Location file : files) {
      try (SourceFile open = session.openFile(file)) {
        items.add(new Item((Location.Remote) file, open.size()));
      }
    }
    return items;
  }

  private static void compare(
      GantrySession session, List<Item> objects, List<Item> files, int rounds) throws Exception {
    try (Alone alone = new Alone()) {
      Comparison all =
          new Comparison(objects.size() + " objects", objects.stream().mapToLong(Item::bytes).sum())
              .samples(objects.size())
              .add("CRT alone", () -> alone.download(objects));
      List<Device> devices = new ArrayList<>(List.of(Device.HOST));
      if (CudaDriver.load() instanceof Availability.Present<CudaDriver>(CudaDriver driver)
          && driver.deviceCount() > 0) {
        devices.add(new Device.Cuda(0));
      }
      for (Device device : devices) {
        all.add("Gantry, s3 to " + device, () -> load(session, objects, device));
        if (!files.isEmpty()) {
          all.add("Gantry, http to " + device, () -> load(session, files, device));
        }
      }
      all.print(rounds);
    }
  }

  private static void compareUploads(GantrySession session, Path file, int rounds)
      throws Exception {
    Location.Remote target = (Location.Remote) Location.of("s3://bucket/uploaded");
    try (Alone alone = new Alone()) {
      new Comparison("an upload", Files.size(file))
          .samples(1)
          .add("CRT alone", () -> alone.upload(file, target))
          .add("Gantry", () -> session.writable(target).upload(file, target))
          .print(rounds);
    }
  }

  private static void load(GantrySession session, List<Item> items, Device device) {
    List<ExtentRequest> wanted =
        items.stream()
            .map(item -> new ExtentRequest(new Extent(item.location(), 0, item.bytes()), 1))
            .toList();
    session.load(wanted, device, TransferOptions.defaults()).close();
  }

  /// Downloads by the CRT client, with one request for each object, which the client splits by itself.
  private static final class Alone implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final Map<Item, MemorySegment> targets = new HashMap<>();
    private final URI endpoint = URI.create(setting("aws.endpointUrlS3", "AWS_ENDPOINT_URL_S3"));
    private final CredentialsProvider credentials =
        new StaticCredentialsProvider.StaticCredentialsProviderBuilder()
            .withAccessKeyId(utf8(setting("aws.accessKeyId", "AWS_ACCESS_KEY_ID")))
            .withSecretAccessKey(utf8(setting("aws.secretAccessKey", "AWS_SECRET_ACCESS_KEY")))
            .build();
    private final AwsSigningConfig signing =
        AwsSigningConfig.getDefaultS3SigningConfig(
            setting("aws.region", "AWS_REGION"), credentials);
    private final S3Client client =
        new S3Client(
            new S3ClientOptions()
                .withRegion(setting("aws.region", "AWS_REGION"))
                .withSigningConfig(signing)
                .withClientBootstrap(ClientBootstrap.getOrCreateStaticDefault())
                .withPartSize(PART_BYTES)
                .withThroughputTargetGbps(LINE_GBPS)
                .withDirectBufferPoolOptions(
                    S3DirectBufferPoolOptions.elastic(POOL_BYTES / 4, POOL_BYTES)));

    private static String setting(String property, String variable) {
      return System.getProperty(property, System.getenv(variable));
    }

    private static byte[] utf8(String text) {
      return text.getBytes(StandardCharsets.UTF_8);
    }

    /// Downloads into memory that was allocated in the first round.
    void download(List<Item> items) {
      List<CompletableFuture<Void>> ends = new ArrayList<>();
      for (Item item : items) {
        ends.add(download(item, targets.computeIfAbsent(item, one -> arena.allocate(one.bytes()))));
      }
      ends.forEach(CompletableFuture::join);
    }

    void upload(Path file, Location.Remote target) throws IOException {
      Handler handler = new Handler(MemorySegment.NULL);
      HttpHeader[] headers = {
        new HttpHeader("Host", endpoint.getRawAuthority()),
        new HttpHeader("Content-Length", Long.toString(Files.size(file)))
      };
      S3MetaRequest request =
          client.makeMetaRequest(
              new S3MetaRequestOptions()
                  .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.PUT_OBJECT)
                  .withRequestFilePath(file)
                  .withHttpRequest(
                      new HttpRequest("PUT", new Item(target, 0).path(), headers, null))
                  .withEndpoint(endpoint)
                  .withResponseHandler(handler));
      handler.end.whenComplete((_, _) -> request.close()).join();
    }

    private CompletableFuture<Void> download(Item item, MemorySegment target) {
      Handler handler = new Handler(target);
      HttpHeader[] headers = {new HttpHeader("Host", endpoint.getRawAuthority())};
      S3MetaRequest request =
          client.makeMetaRequest(
              new S3MetaRequestOptions()
                  .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.GET_OBJECT)
                  .withHttpRequest(new HttpRequest("GET", item.path(), headers, null))
                  .withEndpoint(endpoint)
                  .withResponseHandler(handler));
      return handler.end.whenComplete((_, _) -> request.close());
    }

    @Override
    public void close() {
      client.close();
      client.getShutdownCompleteFuture().join();
      signing.close();
      credentials.close();
      arena.close();
    }
  }

  private static final class Handler
      implements S3MetaRequestResponseHandler, S3BorrowedBufferDelivery {
    private final MemorySegment target;
    private final CompletableFuture<Void> end = new CompletableFuture<>();

    Handler(MemorySegment target) {
      this.target = target;
    }

    @Override
    public int onResponseBodyBorrowed(S3BorrowedBuffer buffer, long from, long to) {
      try (buffer) {
        MemorySegment bytes = MemorySegment.ofBuffer(buffer.asByteBuffer());
        MemorySegment.copy(bytes, 0, target, from, bytes.byteSize());
      }
      return 0;
    }

    @Override
    public void onFinished(S3FinishedResponseContext context) {
      if (context.getErrorCode() == 0) {
        end.complete(null);
      } else {
        end.completeExceptionally(
            new IllegalStateException(CRT.awsErrorString(context.getErrorCode())));
      }
    }
  }
}
