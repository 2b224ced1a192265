-- | The service's replies, independent of any HTTP library.
module Rest.Reply
  ( Reply (..),
    userReply,
    createdReply,
    userNotFound,
    userDeleted,
    notFound,
    methodNotAllowed,
    invalidId,
    invalidPage,
    invalidUser,
    bodyTooLarge,
    duplicateEmail,
    databaseUnavailable,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Network.HTTP.Types (Header, Status, badRequest400, conflict409, created201, methodNotAllowed405, mkStatus, notFound404, ok200, serviceUnavailable503)

-- | A status, the headers other than type and length, and a JSON body.
data Reply = Reply Status [Header] ByteString

-- | 200 with this body.
userReply :: ByteString -> Reply
userReply = Reply ok200 []

-- | 201 with this body: a new user with this id.
createdReply :: Int64 -> ByteString -> Reply
createdReply number = Reply created201 [("Location", "/users/" <> Char8.pack (show number))]

-- | 404: there is no user with this id.
userNotFound :: Reply
userNotFound = Reply notFound404 [] "{\"error\":\"User not found\"}"

-- | 200: the user was deleted.
userDeleted :: Reply
userDeleted = Reply ok200 [] "{\"message\":\"User deleted\"}"

-- | 404: there is no such path.
notFound :: Reply
notFound = Reply notFound404 [] "{\"error\":\"Not found\"}"

-- | 405: the path has only these methods.
methodNotAllowed :: ByteString -> Reply
methodNotAllowed allowed = Reply methodNotAllowed405 [("Allow", allowed)] "{\"error\":\"Method not allowed\"}"

-- | 400: the id is not a number.
invalidId :: Reply
invalidId = Reply badRequest400 [] "{\"error\":\"Invalid id\"}"

-- | 400: the page or the limit is not valid.
invalidPage :: Reply
invalidPage = Reply badRequest400 [] "{\"error\":\"Invalid page or limit\"}"

-- | 400: the body is not a valid user.
invalidUser :: Reply
invalidUser = Reply badRequest400 [] "{\"error\":\"Invalid user\"}"

-- | 413: the body is larger than any user can be.
bodyTooLarge :: Reply
bodyTooLarge = Reply (mkStatus 413 "Payload Too Large") [] "{\"error\":\"Body too large\"}"

-- | 409: another user has this e-mail address.
duplicateEmail :: Reply
duplicateEmail = Reply conflict409 [] "{\"error\":\"Email already exists\"}"

-- | 503: the database is locked, or cannot be written.
databaseUnavailable :: Reply
databaseUnavailable = Reply serviceUnavailable503 [] "{\"error\":\"Database unavailable\"}"
