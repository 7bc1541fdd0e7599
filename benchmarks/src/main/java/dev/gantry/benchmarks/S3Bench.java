// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
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

/// Compares downloads of the same objects by the CRT client alone, to direct memory, and by Gantry, to host
/// memory, in turns. Both clients have parts of 8 MiB and a pool of direct buffers.
///
/// `S3Bench s3://bucket/folder/ [ROUNDS]`, with `AWS_ENDPOINT_URL_S3` (path style), `AWS_REGION` and keys in the
/// environment; `-Xmx64m -XX:MaxDirectMemorySize=1200m`, of which each client has half.
public final class S3Bench {
  private static final long PART_BYTES = 8L << 20;
  private static final long POOL_BYTES = 512L << 20;

  private S3Bench() {}

  private record Item(Location.Remote location, long bytes) {
    String path() {
      return "/" + location.uri().getRawAuthority() + location.uri().getRawPath();
    }
  }

  /// @param arguments a folder, and the number of rounds
  public static void main(String[] arguments) throws Exception {
    int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
    try (GantrySession session = GantrySession.open();
        Alone alone = new Alone()) {
      List<Item> items = new ArrayList<>();
      Location.Remote folder = (Location.Remote) Location.of(arguments[0]);
      for (Location file : session.list(folder).orElseThrow()) {
        try (SourceFile open = session.openFile(file)) {
          items.add(new Item((Location.Remote) file, open.size()));
        }
      }
      new Comparison(items.size() + " objects", items.stream().mapToLong(Item::bytes).sum())
          .samples(items.size())
          .add("CRT alone", () -> alone.download(items))
          .add("Gantry", () -> load(session, items))
          .print(rounds);
    }
  }

  private static void load(GantrySession session, List<Item> items) {
    List<ExtentRequest> wanted =
        items.stream()
            .map(item -> new ExtentRequest(new Extent(item.location(), 0, item.bytes()), 1))
            .toList();
    session.load(wanted, Device.HOST, TransferOptions.defaults()).close();
  }

  /// Downloads by the CRT client, with one request for each object, which the client splits by itself.
  private static final class Alone implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final Map<Item, MemorySegment> targets = new HashMap<>();
    private final URI endpoint = URI.create(System.getenv("AWS_ENDPOINT_URL_S3"));
    private final CredentialsProvider credentials =
        new StaticCredentialsProvider.StaticCredentialsProviderBuilder()
            .withAccessKeyId(variable("AWS_ACCESS_KEY_ID"))
            .withSecretAccessKey(variable("AWS_SECRET_ACCESS_KEY"))
            .build();
    private final AwsSigningConfig signing =
        AwsSigningConfig.getDefaultS3SigningConfig(System.getenv("AWS_REGION"), credentials);
    private final S3Client client =
        new S3Client(
            new S3ClientOptions()
                .withRegion(System.getenv("AWS_REGION"))
                .withSigningConfig(signing)
                .withClientBootstrap(ClientBootstrap.getOrCreateStaticDefault())
                .withPartSize(PART_BYTES)
                .withDirectBufferPoolOptions(
                    S3DirectBufferPoolOptions.elastic(POOL_BYTES / 4, POOL_BYTES)));

    private static byte[] variable(String name) {
      return System.getenv(name).getBytes(StandardCharsets.UTF_8);
    }

    /// Downloads into memory that was allocated in the first round.
    void download(List<Item> items) {
      List<CompletableFuture<Void>> ends = new ArrayList<>();
      for (Item item : items) {
        ends.add(download(item, targets.computeIfAbsent(item, one -> arena.allocate(one.bytes()))));
      }
      ends.forEach(CompletableFuture::join);
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
